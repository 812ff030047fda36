"""What ``make run`` prints of a plan: the next step of the jobs that have one first, and the sums."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fleet.shown import split_reason
from include.short_names import shorten_name, shorten_names, shorten_names_in
from models.scheduling.figures import format_count, format_late

WIDTH = 160  # where the output is no terminal
MOST = 12
"""Jobs that have a line: the page and plans.json have all, with each step."""


def open_console() -> Console:
    """Return the console of standard output."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def plan_table(rows: Iterable[Mapping[str, Any]]) -> Group:
    """Return a line of each job's next step, of so many jobs, and what there is more, of ``plans.json`` as it is."""
    listed = list(rows)
    planned = [row for row in listed if row["status"] == "planned"]
    jobs = [list(steps) for _, steps in groupby(planned, key=lambda row: (row["cluster"], row["job"]))]
    table = Table(title="Next steps (UTC)", title_justify="left", show_lines=False)
    for name in ("when", "job", "slots", "late minutes a day"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", no_wrap=True, overflow="ellipsis")
    for steps in sorted(jobs, key=lambda steps: str(steps[0]["apply_at"]))[:MOST]:
        table.add_row(*map(Text, _cells(steps[0])))  # a name in brackets is no markup
    return Group(table, Text(_sum(planned, jobs)), _others(listed))


def _cells(step: Mapping[str, Any]) -> tuple[str, ...]:
    names, late = shorten_names([*step["parallelism_from"], *step["parallelism_to"]]), step.get("day_late_minutes")
    return (
        str(step["apply_at"]).replace("T", " ")[:16],
        shorten_name(step["job"]),
        f"{step['slots_from']} -> {step['slots']}",
        "-" if late is None else f"{late:.1f}",
        shorten_names_in(split_reason(step["reason"])[0], names),
    )


def _sum(planned: list[Mapping[str, Any]], jobs: list[list[Mapping[str, Any]]]) -> str:
    late = [steps[0].get("day_late_minutes") for steps in jobs]
    known = [one for one in late if one is not None]
    expected = f"; {format_late(sum(known))} expected in the day" if known else ""
    more = f", of which the first {MOST} are shown" if len(jobs) > MOST else ""
    steps = f"{format_count(len(planned), 'step')} of {format_count(len(jobs), 'job')}{more}"
    return f"{steps}{expected}; all of them are in plans.json and in the report"


def _others(rows: list[Mapping[str, Any]]) -> Text:
    held = [shorten_name(row["job"]) for row in rows if row["status"] == "hold"]
    refused: dict[str, list[str]] = {}
    for row in rows:
        if row["status"] == "refused":
            refused.setdefault(str(row["refusal"]), []).append(shorten_name(row["job"]))
    stay = "stays as it is" if len(held) == 1 else "stay as they are"
    parts = [f"{format_count(len(held), 'job')} {stay}: {', '.join(sorted(held))}"] if held else []
    parts += [f"{len(jobs)} refused: {name} ({', '.join(sorted(jobs))})" for name, jobs in sorted(refused.items())]
    parts += sorted({f"warning: {row['warning']}" for row in rows if row.get("warning")})
    return Text("; ".join(parts))
