"""One measured figure, and how a list of them is shown and kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from include.atomic_write import write_text


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure and, where there is one, what it is held against, both taken in the same run.

    Attributes:
        name: what was measured.
        value: the figure.
        unit: its unit.
        reference: the same figure of the thing compared with; None when there is none.
        ratio: how many times better than the reference (above 1: better); None without a reference.
    """

    name: str
    value: float
    unit: str
    reference: float | None = None
    ratio: float | None = None


def show(measurements: Iterable[Measurement], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(title="Benchmarks")
    table.add_column("name")
    for heading in ("value", "unit", "reference", "ratio"):
        table.add_column(heading, justify="right")
    for result in measurements:
        cells = [
            "" if cell is None else f"{cell:,.3g}" if abs(cell) < 10 else f"{cell:,.0f}"
            for cell in (result.value, result.reference, result.ratio)
        ]
        table.add_row(result.name, cells[0], result.unit, cells[1], cells[2])
    console.print(table)


def write(measurements: Iterable[Measurement], path: Path) -> None:
    """Write the figures as a JSON list, whole or not at all."""
    write_text(path, json.dumps([asdict(result) for result in measurements], indent=1))
