"""A verdict on each cell of a paper: what the registry says of it, and what came out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.papers.cells import Cell
from benchmarks.papers.registry import FROM_RUNS, Block, Item, PaperRegistry


class Verdict(StrEnum):
    """What a cell comes to."""

    DIFFERS = "differs"
    MISSING = "no verdict"
    AGREES = "agrees"
    INPUT = "input, not a result"
    UNPUBLISHED = "no number published"
    SAME_RUN = "same run again"
    READING = "reading chosen"
    NOT_ATTEMPTED = "not attempted"
    OURS_ALONE = "ours alone"


NO_CAUSE = "the cause is not known"
NO_FIGURE = "no finite figure came out"
OWN_TABLE = "a table of our own, which the paper does not have"
_WITHOUT_RUN = {"input": Verdict.INPUT, "not attempted": Verdict.NOT_ATTEMPTED}
# Within the tolerance; a difference is one whatever the cell is.
_WITHIN = {
    "fitted": Verdict.INPUT,
    "unpublished": Verdict.UNPUBLISHED,
    "same run": Verdict.SAME_RUN,
    "reading": Verdict.READING,
}
CENSORED = "longer than what is measured, so that nothing says how near they are"


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell with its verdict.

    Attributes:
        row, column, unit: as in the results.
        published: a figure, a word where the paper prints one ("6m+"), None where its text has none.
        ours, spread: None where nothing was run.
        verdict: of this cell.
        reason: why it is no agreement; empty for one, and for rows of our own.
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

    A cell that the registry does not list is ours alone, whatever published figure stands beside it.
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
    judged += [_judged(cell, Verdict.OURS_ALONE) for cell in results.values()]
    order = list(Verdict)
    return JudgedItem(item, tuple(sorted(judged, key=lambda one: order.index(one.verdict))))


def _judge_registered(item: Item, block: Block, name: tuple[str, str], cell: Cell | None) -> Judged:
    row, column = name
    if cell is None:
        verdict = _WITHOUT_RUN.get(block.status, Verdict.MISSING)
        reason = "" if verdict is Verdict.MISSING else block.reason
        return Judged(row, column, block.unit, block.published_figure(row, column), None, None, verdict, reason)
    if block.status not in FROM_RUNS:
        return _judged(cell, _WITHOUT_RUN[block.status], block.reason)
    if block.status == "ours":
        return _judged(cell, Verdict.OURS_ALONE, block.reason)
    result = _compare(item, block, cell)
    if block.status in _WITHIN and result.verdict is not Verdict.DIFFERS:
        return replace(result, verdict=_WITHIN[block.status], reason=block.reason)
    return result


def _compare(item: Item, block: Block, cell: Cell) -> Judged:
    """Return the verdict on a result; a censored figure can differ, and does not agree."""
    published: float | str | None = cell.published
    tolerance = block.tolerance or item.tolerance
    if block.at_most is not None:
        published, agrees = f"at most {block.at_most:g}", cell.ours <= block.at_most
    elif cell.published is None or tolerance is None:
        return _judged(cell, Verdict.OURS_ALONE)
    else:
        agrees = math.isfinite(cell.ours) and tolerance.admits(cell.ours, cell.published)
    if not agrees:
        fallback = NO_CAUSE if math.isfinite(cell.ours) else NO_FIGURE
        verdict, reason = Verdict.DIFFERS, item.reason_of(cell.row, cell.column) or fallback
    elif item.censored_at is not None and max(cell.ours, cell.published or 0.0) >= item.censored_at:
        verdict, reason = Verdict.OURS_ALONE, CENSORED
    else:
        verdict, reason = Verdict.AGREES, ""
    return replace(_judged(cell, verdict, reason), published=published)


def _judged(cell: Cell, verdict: Verdict, reason: str = "") -> Judged:
    ours = cell.ours if math.isfinite(cell.ours) else None
    return Judged(cell.row, cell.column, cell.unit, cell.published, ours, cell.spread, verdict, reason)
