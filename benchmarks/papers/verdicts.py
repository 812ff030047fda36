"""A verdict on each cell of a paper: what the registry says of it, and what came out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.papers.cells import Cell
from benchmarks.papers.registry import Block, Item, PaperRegistry, Tolerance


class Verdict(StrEnum):
    """What a cell comes to."""

    DIFFERS = "differs"
    MISSING = "no verdict"
    AGREES = "agrees"
    INPUT = "input, not a result"
    NOT_ATTEMPTED = "not attempted"
    OURS_ALONE = "ours alone"


NO_CAUSE = "the cause is not known"
NO_FIGURE = "no finite figure came out"
OWN_TABLE = "a table of our own, which the paper does not have"


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell with its verdict.

    Attributes:
        row, column, unit: as in the results.
        published: a figure, a word where the paper prints one ("6m+"), None where its text has none.
        ours, spread: None where nothing was run.
        verdict: of this cell.
        reason: why it is no agreement; empty for one.
    """

    row: str
    column: str
    unit: str
    published: float | str | None
    ours: float | None
    spread: float | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """A table or figure with all its cells, what differs first."""

    item: Item
    cells: tuple[Judged, ...]

    def of(self, verdict: Verdict) -> list[Judged]:
        """Return the cells of one verdict."""
        return [cell for cell in self.cells if cell.verdict is verdict]


def judge(registry: PaperRegistry, cells: Iterable[Cell]) -> list[JudgedItem]:
    """Return every table of the registry with a verdict on each of its cells, and the tables of our own.

    A cell that is added to a table of the paper is compared where it has a published figure beside it.
    """
    tables: dict[str, list[Cell]] = {}
    for cell in cells:
        tables.setdefault(cell.table, []).append(cell)
    result = [_judge_item(item, tables.pop(item.id, [])) for item in registry.items]
    for name, remaining in tables.items():
        item = Item(id=name, label=name, title="", nothing=OWN_TABLE)
        result.append(_judge_item(item, remaining))
    return result


def count(items: Iterable[JudgedItem]) -> Counter[Verdict]:
    """Return how many cells have each verdict."""
    return Counter(cell.verdict for item in items for cell in item.cells)


def missing(items: Iterable[JudgedItem]) -> list[str]:
    """Return the cells that should have come out of a run and did not, as ``table, row, column``."""
    return [f"{item.item.label}, {cell.row}, {cell.column}" for item in items for cell in item.of(Verdict.MISSING)]


def _judge_item(item: Item, cells: Sequence[Cell]) -> JudgedItem:
    results = {(cell.row, cell.column): cell for cell in cells}
    judged = [
        _judge_registered(item, block, name, results.pop(name, None)) for block in item.cells for name in block.names()
    ]
    judged += [_judge_result(item, cell, item.tolerance) for cell in results.values()]
    order = list(Verdict)
    return JudgedItem(item, tuple(sorted(judged, key=lambda one: order.index(one.verdict))))


def _judge_registered(item: Item, block: Block, name: tuple[str, str], cell: Cell | None) -> Judged:
    row, column = name
    if block.status == "result":
        if cell is not None:
            return _judge_result(item, cell, block.tolerance or item.tolerance, block.at_most)
        return Judged(row, column, block.unit, block.published_figure(row, column), None, None, Verdict.MISSING)
    verdict = Verdict.INPUT if block.status == "input" else Verdict.NOT_ATTEMPTED
    if cell is None:
        figure = block.published_figure(row, column)
        return Judged(row, column, block.unit, figure, None, None, verdict, block.reason)
    return Judged(row, column, cell.unit, cell.published, _finite(cell.ours), cell.spread, verdict, block.reason)


def _judge_result(item: Item, cell: Cell, tolerance: Tolerance | None, at_most: float | None = None) -> Judged:
    published: float | str | None = cell.published
    agrees = None
    if at_most is not None:
        published, agrees = f"at most {at_most:g}", cell.ours <= at_most
    elif cell.published is not None and tolerance is not None:
        agrees = math.isfinite(cell.ours) and tolerance.admits(cell.ours, cell.published)
    if agrees is None:
        verdict, reason = Verdict.OURS_ALONE, ""
    elif agrees:
        verdict, reason = Verdict.AGREES, ""
    else:
        fallback = NO_CAUSE if math.isfinite(cell.ours) else NO_FIGURE
        verdict, reason = Verdict.DIFFERS, item.reason_of(cell.row, cell.column) or fallback
    return Judged(cell.row, cell.column, cell.unit, published, _finite(cell.ours), cell.spread, verdict, reason)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
