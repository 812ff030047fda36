"""``tidewise backtest``: policies compared on the history that ``make run`` has ingested, through the real DAG."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.arguments import CommandParser, moment
from cli.command import add_out, command
from cli.dag_client import DagClient, DagFailedError
from cli.embedded import airflow_environment
from cli.out_lock import hold_paths
from cli.process_group import exit_on_sigterm
from cli.progress import ProgressLog
from cli.run import RunError, end_of_recording
from cli.run_table import open_console
from include.place import local_beside, place
from include.settings import PROJECT, Settings
from include.utc import IntervalError, format_utc
from lab.commands.advise import format_table

PARTS = {
    "backtest": "what every policy would have cost on every job's last days",
    "report": "one HTML page",
}
_COLUMNS = {
    "cost_vs_clairvoyant": "cost / clairvoyant's",
    "rescales_per_day": "rescales a day",
    "late_minutes_per_day": "late minutes a day",
    "slot_hours": "slot-hours",
    "recommended_jobs": "jobs it is recommended for",
}


def comparison_table(policies: Sequence[Mapping[str, Any]]) -> Table:
    """Return the means over jobs as a table.

    Args:
        policies: of ``stages/backtest.json``, the cheapest first.
    """
    rows = []
    for row in policies:
        values = (row[name] for name in _COLUMNS)
        rows.append((row["policy"], *("failed" if value is None else f"{value:,.4g}" for value in values)))
    title = "Policies on the jobs' own last days, means over jobs"
    return format_table(title, ("policy", *_COLUMNS.values()), rows)


def run(settings: Settings, options: argparse.Namespace, console: Console) -> int:
    """Compare, print, and write the report again; returns the exit code."""
    progress = ProgressLog(console, PARTS)
    out = place(settings.paths.out)
    if not (place(settings.paths.lake) / "silver").is_dir():
        raise RunError(
            f"{settings.paths.lake} holds no ingested history: run `make run` first, pass the --out that it was given, "
            "or set paths.lake"
        )
    as_of = options.as_of or end_of_recording()
    progress.say(f"policies are compared on the history before {format_utc(as_of)}")
    log = PROJECT / local_beside(settings.paths.out) / "backtest.log"
    with progress.never_silent(), DagClient(airflow_environment(settings), log, progress.begin) as client:
        progress.begin("backtest")
        client.run("tidewise_backtest", {"as_of": format_utc(as_of)})
    result = json.loads((out / "stages" / "backtest.json").read_text())
    console.print(comparison_table(result.get("policies", [])))
    console.print(f"report: {out / 'report.html'}", soft_wrap=True, highlight=False)
    if policies := result.get("planner_policies"):
        print("cheaper on their jobs by more than backtest.margin; in tidewise.toml:\n[planner.policies]")
        print("\n".join(f"{json.dumps(job)} = {json.dumps(policy)}" for job, policy in sorted(policies.items())))
    skipped = ", ".join(f"{count} {reason}" for reason, count in result["skipped"].items()) or "none"
    print(f"backtest: {result['compared']} of {result['jobs']} jobs compared, left out: {skipped}")
    return 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--as-of", type=moment, help="end of the history; default: the end of the recording")
    add_out(parser)


def _run(options: argparse.Namespace, _: float) -> int:
    exit_on_sigterm()
    with hold_paths(options.out, "tidewise backtest") as settings:
        return run(settings, options, open_console())


main = command(
    "backtest",
    __doc__,
    _add_arguments,
    _run,
    errors=(RunError, DagFailedError, IntervalError),
    stopped="stopped; run it again at any time",
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
