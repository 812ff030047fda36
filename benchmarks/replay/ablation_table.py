"""``python -m benchmarks.replay.ablation_table``: what each part of the planner is worth, on the tuning traces.

Every tuning trace of ``split.toml`` from its beginning; the planner without one part each, beside the planner itself,
with the same seeds, load, noise and failures.  The ratio to the planner is paired, with an interval over traces and
seeds: a part whose interval holds 1 cannot be told from chance.  ``--rows`` publishes rows that were written before.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import readable_file
from benchmarks.replay.best_form_table import print_tables, publish_jobs, read_rows
from benchmarks.replay.cost_summary import PLANNER
from benchmarks.replay.cpu_estimate import describe_estimate
from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import FLOOR, ReplayCase, Row, replay_in_processes
from benchmarks.replay.replay_tables import write
from benchmarks.replay.split import TRACES, UNSEEN, Piece, read_piece, read_split
from benchmarks.replay.tables import PUBLISHED
from cli.arguments import CommandParser, number, whole_number
from cli.workers import exit_on_sigterm
from include.settings import PROJECT
from lab.replay.ablations import ABLATIONS
from lab.replay.conditions import Conditions

PAGE = PROJECT / "docs" / "replay.md"
BEGIN, END = "<!-- parts: written by benchmarks.replay.ablation_table -->\n", "<!-- end of parts -->"
FIRST_SEED = 100  # of tuning; those of the test are below


def replay_ablations(jobs: Sequence[str], seeds: int, days: float, unseen: Path, out: Path) -> list[Row]:
    """Replay the tuning traces; rows are written after each.

    Args:
        jobs: names.
        seeds: how many.
        days: of each trace, from its beginning.
        unseen: folder of the traces that are not shipped.
        out: where the rows go.
    """
    rows: list[Row] = []
    policies = (PLANNER, *ABLATIONS, BOUND, FLOOR)
    traces = [read_piece(Piece(name, 0, 0), (TRACES, unseen)).cut_days(days) for name in read_split("tuning").traces]
    of_all = len(jobs) * sum(trace.days for trace in traces)
    print(describe_estimate(policies, seeds, of_all), flush=True)
    for job, trace in itertools.product(jobs, traces):
        began = time.monotonic()
        case = ReplayCase(trace, job, policies, tuple(range(FIRST_SEED, FIRST_SEED + seeds)), Conditions())
        rows += replay_in_processes(case, 2).rows
        write(rows, out)
        print(f"{job}, {trace.name}: {len(policies)} candidates, {time.monotonic() - began:.0f} s", flush=True)
    return rows


def describe_run(rows: Sequence[Row]) -> str:
    """Return what was run with one job, as a sentence."""
    traces = ", ".join(dict.fromkeys(str(row["trace"]) for row in rows))
    seeds = len({row["seed"] for row in rows})
    return f"`{rows[0]['job']}`, {traces}; {seeds} {'seed' if seeds == 1 else 'seeds'}; costs after the first day."


def publish(rows: Sequence[Row]) -> None:
    """Write the CSV files, and the section of docs/replay.md."""
    publish_jobs(rows, "ablations", describe_run, (BEGIN, END), page=PAGE, published=PUBLISHED)


def main(argv: Sequence[str] | None = None) -> int:
    """Run and publish, or publish."""
    parser = CommandParser(prog="replay.ablation_table", description=__doc__)
    parser.add_argument("--rows", type=readable_file, nargs="+", metavar="JSON", help="publish these rows")
    parser.add_argument("--job", nargs="+", default=["wordcount"], metavar="NAME", help="default: wordcount")
    parser.add_argument("--seeds", type=whole_number(1), default=3, metavar="N", help="default: 3")
    parser.add_argument("--days", type=number(1, 36_600, above=True), default=8.0, metavar="N", help="default: 8")
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    parser.add_argument("--json", type=Path, default=Path("out/ablations.json"), metavar="OUT", help="for the rows")
    options = parser.parse_args(argv)
    exit_on_sigterm()
    if options.rows is not None:
        rows = read_rows(options.rows)
    else:
        rows = replay_ablations(options.job, options.seeds, options.days, options.unseen, options.json)
    publish(rows)
    print_tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
