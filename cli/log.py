"""``tidewise log``: what was decided, sent and answered, and what persons did: on one job, or without one on all."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.arguments import CommandParser, UsageError, moment, number, whole_number
from cli.command import add_out, command
from cli.known_jobs import name_near, read_jobs_of
from cli.printing import print_lines
from cli.questions import cluster_and_job, open_reader
from fleet.decisions import decision_of
from fleet.fleet_reader import FleetReader
from fleet.history import HistoryEntry, merge_history, select_acts
from fleet.plain import to_json
from include.lake_table import is_in
from include.short_names import shorten_names, shorten_names_in, visible
from include.tables import CONTROL_LOG
from include.utc import format_utc
from models.control.log_lines import LogLine

KNOWN_FOR = timedelta(days=14)
"""A job without a row for longer is not known by name."""
JSON_COLUMNS = ("observed", "desired", "limits", "outcome", "history_before", "history", "request")
NEWS = "verb <> 'wait' OR reason = 'needs_approval'"
"""What of all jobs is shown: not what was only waited for."""


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the log as JSON can hold it, with its JSON columns as values."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        if name in JSON_COLUMNS:
            made[name] = None if value is None else json.loads(value)
        elif name in {"parallelism_from", "parallelism_to", "operators"}:
            made[name] = None if value is None else dict(value)
        else:
            made[name] = value.isoformat() if hasattr(value, "isoformat") else value
    return made


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
    return tuple(visible(cell) for cell in cells)


def run(options: argparse.Namespace, now_s: float) -> int:
    """Print the history; returns the exit code.

    Raises:
        UsageError: no such job is known.
    """
    settings, reader = open_reader(options)
    lake, until = settings.paths.lake, options.until or datetime.fromtimestamp(now_s, UTC)
    since = until - timedelta(hours=options.hours)
    lost = [str(one) for one in reader.find_lost_tables() if one.name == CONTROL_LOG.name]
    if lost:
        print_lines(lost, sys.stderr)
    acts: list[Mapping[str, Any]] = [*reader.tables.read_interventions(since, until)]
    if options.job is None:
        return _print_fleet(options, reader, reader.log.read_lines(since, until, NEWS), acts, until)
    cluster, _, job = options.job.partition("/")
    where = f"{is_in('cluster', [cluster])} AND {is_in('job', [job])}"
    rows = reader.log.read_lines(since, until, where, list(CONTROL_LOG.columns))
    rows.sort(key=lambda row: (row["lease_number"], row["entry"]))
    acts = select_acts(acts, cluster, job)
    if not rows:
        _require_known(lake, options.job, min(since, until - KNOWN_FOR), until)
    if options.json:
        print(json.dumps([plain_row(row) for row in rows], ensure_ascii=False, indent=2))
        return 0
    short = {} if options.full_names else shorten_names(logged_operators(rows))
    lines = [shorten_line(one.line, short) for one in merge_history(rows, acts)]
    if not lines:
        span = f"in the last {options.hours:g} h" if options.until is None else _span(options.hours, until)
        age = _say_age(reader, options.job, until, options.hours)
        print(f"no decision on {visible(options.job)} {span}: it was left as it is{age}")
    elif sys.stdout.isatty():
        Console().print(history_table(visible(options.job), lines))
    else:
        print(plain_text(lines))
    return 0


def _print_fleet(
    options: argparse.Namespace,
    reader: FleetReader,
    rows: Sequence[dict[str, Any]],
    acts: Sequence[Mapping[str, Any]],
    until: datetime,
) -> int:
    if options.json:
        content = {"until": until, "hours": options.hours, "decisions": list(map(decision_of, rows)), "acts": acts}
        print(to_json("log", content))
        return 0
    lines = merge_history(rows, acts)
    if not lines:
        print(f"nothing was sent or done {_span(options.hours, until)}{_say_age(reader, None, until, options.hours)}")
        return 0
    if len(lines) > options.most:
        print(f"the last {options.most} of {len(lines)} lines (--most, --hours; --json has all):")
    for one in lines[-options.most :]:
        print(visible(fleet_line(one)))
    return 0


def fleet_line(one: HistoryEntry) -> str:
    """Return a line of the fleet's log: when, which job, what, and why."""
    line = one.line
    dry = " [dry run]" if line.is_dry_run else ""
    change = f" {line.observed} -> {line.desired}" if line.desired and line.observed else ""
    result = f"; {line.came_of}" if line.came_of else ""
    return f"{one.at:%Y-%m-%d %H:%M:%S} {one.scope}: {line.decision}{dry}{change}: {line.why}{result}"


def _span(hours: float, until: datetime) -> str:
    return f"in the {hours:g} h before {until:%Y-%m-%d %H:%M}Z"


def _say_age(reader: FleetReader, job: str | None, until: datetime, hours: float) -> str:
    """Return where the log ends, where that is before the time that was asked for, and how to ask for it."""
    rows = reader.log.read_newest(until.timestamp()).newest.select(["cluster", "job", "at"]).to_pylist()
    times = [row["at"] for row in rows if job in {None, f"{row['cluster']}/{row['job']}"}]
    if not times:
        return ""
    last = max(times)
    if last >= until - timedelta(hours=hours):
        return ": jobs only waited (tidewise log CLUSTER/JOB says for what)"
    command = (
        f"{f'{visible(job)} ' if job else ''}--until {format_utc(last.replace(microsecond=0) + timedelta(seconds=1))}"
    )
    return f"\nthe last decision is of {last:%Y-%m-%d %H:%M}Z; to see it: tidewise log {command}"


def _require_known(lake: str, name: str, since: datetime, until: datetime) -> None:
    """Raise unless the log has the job; the message names those that are spelt alike."""
    jobs = read_jobs_of(lake, CONTROL_LOG, since.date(), until.date())
    if not jobs:
        raise UsageError(f"the control log below {lake} has no rows yet: the controller writes it (tidewise control)")
    if name not in jobs:
        raise UsageError(f"no job {name!r} in the control log; {name_near(name, jobs)}")


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", nargs="?", type=cluster_and_job, help="cluster/job; none: all jobs, without waits")
    parser.add_argument("--hours", type=number(0, 24 * 400, above=True), default=24.0, help="how far back (24)")
    parser.add_argument("--until", type=moment, help="end of the time shown, as --at of other verbs; default: now")
    parser.add_argument("--most", type=whole_number(1, 1_000_000), default=200, help="of all jobs: most lines (200)")
    parser.add_argument("--json", action="store_true", help="every column of every row as JSON")
    parser.add_argument("--full-names", action="store_true", help="names of operators whole, however long")
    add_out(parser)


main = command("log", __doc__, _add_arguments, run, reads=True)
