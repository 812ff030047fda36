"""The table of planned steps that ``make run`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from include.short_names import shorten_name, shorten_names, shorten_names_in

WIDTH = 160  # where the output is no terminal


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return what a step changes, such as ``parse 2->4, sink 1->2``."""
    short = shorten_names([*before, *after])
    moved = [
        f"{short[name]} {before.get(name, '?')}->{after[name]}" for name in after if after[name] != before.get(name)
    ]
    return ", ".join(moved) or "unchanged"


def rate(per_s: float | None) -> str:
    """Return a rate in records per second, short."""
    return "-" if per_s is None else f"{per_s:,.0f}"


def plan_table(rows: Iterable[Mapping[str, Any]]) -> Group:
    """Return a table of all planned steps by job, and a line on the jobs without one.

    Args:
        rows: of ``plans.json``, sorted by job and step.
    """
    listed = list(rows)
    table = Table(title="Planned steps (UTC; records/s over all sources)", title_justify="left", show_lines=False)
    table.add_column("when", no_wrap=True)
    table.add_column("from -> to", ratio=4)
    for name in ("load q50 / q90", "capacity", "slots", "slot-h saved"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("reason", ratio=5)
    planned = [row for row in listed if row["status"] == "planned"]
    for (cluster, job), steps in groupby(planned, key=lambda row: (row["cluster"], row["job"])):
        table.add_section()
        table.add_row(Text(shorten_name(job), style="bold", overflow="ellipsis"), Text(f"on {cluster}", style="dim"))
        for step in steps:
            table.add_row(*map(Text, _cells(step)))  # a name in brackets is no markup
    return Group(table, _others(listed))


def _cells(step: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        step["apply_at"].replace("T", " ")[:16],
        changes(step["parallelism_from"], step["parallelism_to"]),
        f"{rate(step['expected_load_q50_per_s'])} / {rate(step['expected_load_q90_per_s'])}",
        rate(step["expected_capacity_per_s"]),
        f"{step['slots_from']} -> {step['slots']}",
        f"{step['slot_hours_saved']:+.1f}",
        shorten_names_in(step["reason"], shorten_names([*step["parallelism_from"], *step["parallelism_to"]])),
    )


def _others(rows: list[Mapping[str, Any]]) -> Text:
    held = [shorten_name(row["job"]) for row in rows if row["status"] == "hold"]
    refused: dict[str, list[str]] = {}
    for row in rows:
        if row["status"] == "refused":
            refused.setdefault(str(row["refusal"]), []).append(shorten_name(row["job"]))
    parts = [f"{len(held)} jobs stay as they are: {', '.join(sorted(held))}"] if held else []
    parts += [f"{len(jobs)} refused: {name} ({', '.join(sorted(jobs))})" for name, jobs in sorted(refused.items())]
    parts += sorted({f"warning: {row['warning']}" for row in rows if row.get("warning")})
    return Text("; ".join(parts))
