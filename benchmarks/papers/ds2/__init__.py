"""DS2: word count on Heron and Flink, convergence and accuracy on Nexmark, Timely, skew, overhead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2 import accuracy, convergence, flink_wordcount, heron_wordcount, overhead, timely
from benchmarks.papers.ds2.ds2_plots import convergence_paths, word_count

__all__ = ["tables"]


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Run the experiments of Sections 4.3 and 5.2 to 5.6; their plots go to ``out``."""
    progress("ds2: word count on Heron, DS2 and Dhalion")
    cells = heron_wordcount.cells()
    progress("ds2: word count on Flink")
    actions, rows = flink_wordcount.run()
    cells += flink_wordcount.cells(actions)
    word_count(rows, out)
    progress("ds2: convergence of six queries from every start")
    result, indicated = convergence.runs(convergence.OPTIONS), convergence.runs(convergence.INDICATED)
    cells += convergence.cells(result, indicated)
    convergence_paths(result, indicated, out)
    cells += accuracy.cells(indicated)
    progress("ds2: workers on Timely")
    cells += timely.cells()
    progress("ds2: overhead")
    return cells + overhead.cells()
