"""``make log ARGS="cluster/job"``: what the controller observed, decided, sent and was answered on a job."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, moment, number
from cli.embedded import below
from controller.log.log_reading import plain_row, read_log, read_logged_jobs
from include.settings import PROJECT, SettingsError, load_settings
from include.short_names import shorten_names, shorten_names_in
from include.spark.submission import anchor_paths
from models.control.log_lines import LogLine, log_lines

KNOWN_FOR = timedelta(days=14)
"""A job without a row for longer is not known by name."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def history_table(name: str, lines: Sequence[LogLine]) -> Table:
    """Return a job's history for a terminal."""
    table = Table(title=Text(f"Control log of {name} (UTC)"), title_justify="left")
    table.add_column("when", no_wrap=True)
    for title in ("observed", "desired", "decision", "why", "came of it"):
        table.add_column(title, overflow="fold")
    for line in lines:
        style = "dim" if line.is_dry_run else ""
        table.add_row(*(Text(cell) for cell in _cells(line)), style=style)
    return table


def logged_operators(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the names of the operators in a job's rows."""
    return {name for row in rows for key in ("parallelism_from", "parallelism_to") for name in dict(row[key] or {})}


def shorten_line(line: LogLine, short: Mapping[str, str]) -> LogLine:
    """Return a line with short names of operators in the places of the whole ones."""
    desired, why, outcome_of = (shorten_names_in(text, short) for text in (line.desired, line.why, line.came_of))
    return replace(line, desired=desired, why=why, came_of=outcome_of)


def plain_text(lines: Sequence[LogLine]) -> str:
    """Return a job's history with one line for each decision."""
    return "\n".join(" | ".join(cell or "-" for cell in _cells(line)) for line in lines)


def _cells(line: LogLine) -> tuple[str, ...]:
    decision = f"{line.decision} [dry run]" if line.is_dry_run else line.decision
    about = f"{line.why} ({line.step_id})" if line.step_id and line.why else line.why or line.step_id
    cells = (f"{line.at:%Y-%m-%d %H:%M:%S}", line.observed, line.desired, decision, about, line.came_of)
    return tuple(_visible(cell) for cell in cells)


def _visible(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return _CONTROL.sub("?", text)


def run(options: argparse.Namespace) -> int:
    """Print the history; returns the exit code.

    Raises:
        UsageError: no such job is known.
    """
    if options.out is not None:
        os.environ.update(below(options.out))
    lake = anchor_paths(load_settings()).paths.lake
    until = options.until or datetime.now(UTC)
    since = until - timedelta(hours=options.hours)
    cluster, _, job = options.job.partition("/")
    rows = read_log(lake, cluster, job, since, until)
    if not rows:
        _require_known(lake, options.job, min(since, until - KNOWN_FOR), until)
    if options.json:
        print(json.dumps([plain_row(row) for row in rows], ensure_ascii=False, indent=2))
        return 0
    lines = log_lines(rows)
    short = {} if options.full_names else shorten_names(logged_operators(rows))
    lines = [shorten_line(line, short) for line in lines]
    if not lines:
        print(f"no decision on {_visible(options.job)} in the last {options.hours:g} h: it was left as it is")
    elif sys.stdout.isatty():
        Console().print(history_table(_visible(options.job), lines))
    else:
        print(plain_text(lines))
    return 0


def _require_known(lake: str, name: str, since: datetime, until: datetime) -> None:
    """Raise unless the log has the job; the message names those that are spelt alike."""
    jobs = read_logged_jobs(lake, since, until)
    if name in jobs:
        return
    if not jobs:
        raise UsageError(f"the control log below {lake} has no rows yet: the controller writes it (make control)")
    folded = {job.lower(): job for job in jobs}
    near = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)
    hint = ", ".join(repr(folded[one]) for one in near) or f"{len(jobs)} jobs are known, such as {jobs[0]!r}"
    raise UsageError(f"no job {name!r} in the control log; expected cluster/job: {hint}")


def _job(text: str) -> str:
    cluster, slash, job = text.partition("/")
    if not (cluster and slash and job):
        raise argparse.ArgumentTypeError(f"expected cluster/job, such as live/checkout, not {text!r}")
    return text


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="log", description=__doc__)
    parser.add_argument("job", type=_job, help="cluster/job")
    parser.add_argument("--hours", type=number(0, 24 * 400, above=True), default=24.0, help="how far back (24)")
    parser.add_argument("--until", type=moment, help="end of the time shown; default: now")
    parser.add_argument("--json", action="store_true", help="every column of every row as JSON")
    parser.add_argument("--full-names", action="store_true", help="names of operators whole, however long")
    parser.add_argument("--out", type=Path, help=f"folder of make run, such as {PROJECT / 'out'}; default: settings")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Print; a failure is one message that says what to do."""
    options = _parse(argv)
    try:
        return run(options)
    except UsageError as error:
        print(f"log: {_visible(str(error))}", file=sys.stderr)
        return EXIT_USAGE
    except SettingsError as error:
        print(f"log: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
