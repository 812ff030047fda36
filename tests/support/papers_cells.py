"""Results as the papers' registries ask for them, without running an experiment."""

from __future__ import annotations

from benchmarks.papers.cells import Cell
from benchmarks.papers.registry import FROM_RUNS, read_registry


def registered_cells(paper: str, ours: float = 1.0, published: float | None = 1.0) -> list[Cell]:
    """Return a figure for each cell that a run of the paper's experiments must give."""
    return [
        Cell(paper, item.id, row, column, ours, published, "1")
        for item in read_registry(paper).items
        for block in item.cells
        if block.status in FROM_RUNS
        for row, column in block.names()
    ]
