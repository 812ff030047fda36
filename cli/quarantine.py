"""``tidewise quarantine``: lines and files that broke a rule when they were ingested: file, line, rule, text."""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from cli.arguments import CommandParser, number, whole_number
from cli.command import command
from cli.printing import print_lines
from cli.questions import add_common, open_reader
from fleet.plain import to_json
from include.domain.quarantine_rules import Rule

_TEXT = 160
_SHOWN = ("source_file", "line_number", "reason", "rule", "detail", "raw", "cluster", "observed_at")


def describe_line(row: dict[str, Any]) -> str:
    """Return one of them on two lines: where and why, and its text."""
    place = row["source_file"] if row["line_number"] is None else f"{row['source_file']}:{row['line_number']}"
    detail = f" ({row['detail']})" if row["detail"] else ""
    text = row["raw"] or ""
    shown = text if len(text) <= _TEXT else f"{text[:_TEXT]}... ({len(text)} characters)"
    return f"{place}: {row['reason']}{detail}: {row['rule']}\n    {shown}"


def run(options: argparse.Namespace, now_s: float) -> int:
    """Print the last ones of the hours asked for."""
    _, reader = open_reader(options)
    until = options.at or datetime.fromtimestamp(now_s, UTC)
    since = until - timedelta(hours=options.hours)
    rows, total = reader.tables.read_quarantine(since, until, options.most)
    rows = [row | {"rule": _meaning(row["reason"])} for row in rows]
    if options.json:
        shown = [{name: row[name] for name in _SHOWN} for row in rows]
        print(to_json("quarantine", {"since": since, "until": until, "total": total, "lines": shown}))
        return 0
    if not rows:
        print(f"nothing was quarantined in the files of the last {options.hours:g} h; further back: --hours, --at")
        return 0
    for row in rows:
        print_lines(describe_line(row).split("\n"))
    counted = ", ".join(f"{reason} {count}" for reason, count in Counter(row["reason"] for row in rows).most_common())
    print(f"{len(rows)} of {total} shown: {counted}. The table is ops.quarantine; what a rule means: docs/reasons.md")
    return 0


def _meaning(reason: str) -> str:
    try:
        return Rule(reason).meaning
    except ValueError:  # of another release
        return ""


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--hours", type=number(0, 24 * 400, above=True), default=24.0, help="of the files' hours (24)")
    parser.add_argument("--most", type=whole_number(1, 1_000_000), default=50, help="at most so many lines (50)")
    add_common(parser, "end of the time shown; default: now")


main = command("quarantine", __doc__, _add_arguments, run, reads=True)
