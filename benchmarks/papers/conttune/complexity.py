"""Eq. 7 to 9: how many reconfigurations a tuning takes at worst on average, and how much of that ours takes.

The paper gives the order of growth; every constant is taken as 1 here, as its derivation counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_published import PAPER, PUBLISHED, QUERIES
from benchmarks.papers.conttune.synthetic_jobs import PER_TUNING

RHO = 20  # rates of one permutation, over which a job's history is kept
PHI = 3  # DS2's three steps, the paper's footnote
_ROW = "ContTune_a3"


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The quantities of Section 6.2.

    Attributes:
        p_max: p^max, the largest parallelism; at least 1.
        rho: tunings; at least 1.
        chi: tunings of them that use conservative exploration.
        phi: most reconfigurations of one of those.
        omega: tunings until fast exploitation has converged, at most p_max.
    """

    p_max: int
    rho: int
    chi: int
    phi: int
    omega: int

    @property
    def big(self) -> float:
        """Eq. 7: p_max is doubled log2 p_max times in all, and each tuning begins with one reconfiguration."""
        return (math.log2(self.p_max) + self.rho) / self.rho

    @property
    def cbo(self) -> float:
        """Eq. 8: phi for each conservative tuning, one for each other, and what misleads before convergence."""
        return (self.chi * self.phi + (self.rho - self.chi) + self.omega) / self.rho

    @property
    def both(self) -> float:
        """Eq. 9: the Big phase and CBO."""
        return self.big + self.cbo


def worst_case(p_max: int) -> WorstCase:
    """Return the worst that the derivation allows in one permutation: every tuning conservative, omega = p_max."""
    return WorstCase(p_max, RHO, RHO, PHI, p_max)


def bounds(counts: Iterable[Cell]) -> list[Cell]:
    """Return Eq. 7 to 9 at the published p_max of each query, and our mean of Table 4a as a share of Eq. 9.

    Args:
        counts: cells of Table 4a; the row counts the Big phase, as Eq. 9 does.
    """
    means = {cell.column: cell.ours for cell in counts if cell.table == "4a" and cell.row == _ROW}
    cells = []
    for name in QUERIES:
        worst = worst_case(PUBLISHED["table4b_max_cores"][_ROW][name])
        figures = {"Eq. 7, Big phase": worst.big, "Eq. 8, CBO": worst.cbo, "Eq. 9, both": worst.both}
        cells += [Cell(PAPER, "Eq. 7-9", row, name, value, None, PER_TUNING) for row, value in figures.items()]
        share = float(round(100 * means[name] / worst.both))
        cells.append(Cell(PAPER, "Eq. 7-9", f"{_ROW} / Eq. 9", name, share, None, "%"))
    return cells
