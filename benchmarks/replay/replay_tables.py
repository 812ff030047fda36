"""Rows of the replay as tables on the terminal and as JSON; the backlog's integral is in the latter only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from benchmarks.replay.replay_cases import Row
from include.atomic_write import write_text
from lab.replay.scores import SEGMENTS

_COLUMNS = {
    "rescales_per_day": ("rescales/day", "{:.1f}"),
    "late_minutes_per_day": ("late min/day", "{:.1f}"),
    "rises_ahead_share": ("ahead", "{:.0%}"),
    "rises_ahead_minutes": ("by min", "{:.0f}"),
    "slot_hours": ("slot hours", "{:,.0f}"),
    "cost": ("cost", "{:,.1f}"),
    "cost_vs_bound": ("/ bound", "{:.3f}"),
    "cost_vs_clairvoyant": ("/ clairvoyant", "{:.3f}"),
}


def build_tables(rows: Sequence[Row], segments: Sequence[str] = SEGMENTS) -> list[Table]:
    """Return a table per trace, job and segment: means over seeds, cheapest first; +- belongs to the last column."""
    groups = sorted({(str(row["trace"]), str(row["job"])) for row in rows})
    return [
        _build_table(f"{trace}, {job}: {segment.replace('_', ' ')}", _select(rows, trace, job, segment))
        for trace, job in groups
        for segment in segments
    ]


def _select(rows: Iterable[Row], trace: str, job: str, segment: str) -> dict[str, list[Row]]:
    result: dict[str, list[Row]] = {}
    for row in rows:
        if (row["trace"], row["job"], row["segment"]) == (trace, job, segment):
            result.setdefault(str(row["policy"]), []).append(row)
    return dict(sorted(result.items(), key=lambda item: compute_mean(item[1], "cost")))


def compute_mean(rows: Sequence[Row], column: str) -> float:
    """Return the mean of a column over seeds; NaN where it is not known."""
    values = [value for row in rows if isinstance(value := row.get(column), int | float)]
    return float(np.mean(values)) if values else float("nan")


def _build_table(title: str, result: dict[str, list[Row]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("policy", no_wrap=True)
    for heading, _ in _COLUMNS.values():
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("+-", justify="right", no_wrap=True)
    for policy, rows in result.items():
        figures = [_format_figure(form, compute_mean(rows, column)) for column, (_, form) in _COLUMNS.items()]
        table.add_row(policy, *figures, _format_figure("{:.3f}", _compute_deviation(rows)))
    return table


def _format_figure(form: str, value: float) -> str:
    return form.format(value) if np.isfinite(value) else "-"


def _compute_deviation(rows: Sequence[Row]) -> float:
    values = [value for row in rows if isinstance(value := row["cost_vs_clairvoyant"], float)]
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a JSON list, whole or not at all."""
    write_text(path, json.dumps(list(rows), indent=1, allow_nan=False))
