"""Figures of the papers as tables on the terminal and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich.table import Table

from benchmarks.papers.cells import Cell
from include.atomic_write import write_text

Json = dict[str, str | float | int | None]


def number(value: float | None) -> str:
    """Return a figure with four digits, whole and large ones without decimals; a dash for none."""
    if value is None or not math.isfinite(value):
        return "-"
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def difference(cell: Cell) -> str:
    """Return ours - published and the share of the published figure that it is; nothing without one."""
    if cell.published is None or not math.isfinite(cell.ours):
        return ""
    gap = cell.ours - cell.published
    if gap == 0:
        return "0"
    share = f" ({100.0 * gap / abs(cell.published):+.1f}%)" if cell.published else ""
    return f"{'+' if gap > 0 else ''}{number(gap)}{share}"


def tables_of(cells: Iterable[Cell]) -> list[Table]:
    """Return one table per paper and table, in the order in which they first appear; a row per figure."""
    grouped: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        grouped.setdefault((cell.paper, cell.table), []).append(cell)
    return [_table(f"{paper}, {name}", result) for (paper, name), result in grouped.items()]


def write(cells: Iterable[Cell], path: Path) -> None:
    """Write the figures as a JSON list, whole or not at all; one that is no finite number becomes null."""
    write_text(path, json.dumps([plain(cell) for cell in cells], indent=1, allow_nan=False))


def read(path: Path) -> list[Cell]:
    """Return the figures of a file that :func:`write` wrote; null of ours becomes NaN.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no list of figures.
    """
    rows = json.loads(path.read_text(encoding="utf-8"))
    try:
        return [Cell(**{**row, "ours": math.nan if row["ours"] is None else row["ours"]}) for row in rows]
    except (TypeError, KeyError) as error:
        raise ValueError(f"{path} is no list of figures as make papers writes it: {error}") from error


def plain(cell: Cell) -> Json:
    """Return a cell as JSON types; numbers of numpy become Python's."""
    figures = {name: _finite(getattr(cell, name)) for name in ("ours", "published", "spread")}
    return cell.to_json() | figures | {"seeds": int(cell.seeds)}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _table(title: str, cells: Sequence[Cell]) -> Table:
    """Return a table; spread and runs only where there are several runs."""
    has_spread, has_runs = any(cell.spread is not None for cell in cells), any(cell.seeds != 1 for cell in cells)
    table = Table(title=title, title_justify="left")
    table.add_column("row")
    table.add_column("column")
    headings = ["ours", *["+-"] * has_spread, "published", "difference"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit")
    if has_runs:
        table.add_column("runs", justify="right")
    for row, of_row in groupby(cells, key=lambda cell: cell.row):
        table.add_section()
        for place, cell in enumerate(of_row):
            spread = ["" if cell.spread is None else number(cell.spread)] * has_spread
            figures = [number(cell.ours), *spread, number(cell.published), difference(cell), cell.unit]
            table.add_row("" if place else row, cell.column, *figures, *[str(cell.seeds)] * has_runs)
    return table
