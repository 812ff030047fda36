"""Dragster's evaluation: Fig. 4 and 5, Tables 2 and 3, Theorem 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.dragster.assumptions import vary_assumptions
from benchmarks.papers.dragster.theory import regret_and_fit
from benchmarks.papers.dragster.wordcount import changing_load, search_paths
from benchmarks.papers.dragster.workloads import convergence, yahoo_benchmark


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Run every experiment; pictures are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    return [
        *search_paths(progress, out),
        *convergence(progress, out),
        *changing_load(progress, out),
        *yahoo_benchmark(progress, out),
        *regret_and_fit(progress, out),
        *vary_assumptions(progress),
    ]
