"""The six Nexmark queries as simulated jobs: their sources at the rates of Table 3, and one main operator.

DS2 publishes no operator costs, so the curves are those of section 8 of the ContTune sheet: PA(p) = g p / (1 + a (p-1)
+ b p (p-1)), measured (Q1, Q2) or shaped after ContTune's results (Q3, Q5, Q8).  ContTune did not run Q11; it gets the
curve of Q8, whose windows also take a record once, where those of Q5 slide and take it sixty times.  What it would be
with Q5's is shown beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.ds2.ds2_published import PUBLISHED
from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats

SLOTS = 36
MAIN = "main"
# b of the curves that are shaped after results, per a.
_RESIDUAL_SD = -0.012
# What ContTune's largest rate leaves free at the parallelism that it needs.
_HEADROOM = 1.01


@dataclass(frozen=True, slots=True)
class Curve:
    """g, a, b of PA(p)."""

    per_subtask_per_s: float
    contention: float
    curvature: float

    @classmethod
    def through(cls, p: int, rate_per_s: float, contention: float) -> Curve:
        """Return the curve of a given contention that just sustains a rate at a parallelism."""
        curvature = _RESIDUAL_SD * contention
        shape = p / (1.0 + contention * (p - 1) + curvature * p * (p - 1))
        return cls(_HEADROOM * rate_per_s / shape, contention, curvature)


# Parallelism and rate of the last three: Table 5 of ContTune, and ten times its workload unit of Table 3.
_Q8 = Curve.through(10, 10 * (100e3 + 60e3), 0.05)
CURVES = {
    "Q1": Curve(517_572.0, 0.047474, -5.917e-4),
    "Q2": Curve(755_204.0, 0.060114, -8.638e-4),
    "Q3": Curve.through(18, 10 * (200e3 + 40e3), 0.02),
    "Q5": Curve.through(22, 10 * 80e3, 0.05),
    "Q8": _Q8,
    "Q11": _Q8,
}
QUERIES = tuple(CURVES)
Q11_AS_Q5 = "Q11 as Q5"
CURVES[Q11_AS_Q5] = CURVES["Q5"]


def job(query: str, name: str) -> JobSpec:
    """Return a query as a job."""
    rates, curve = _rates(query), CURVES[query]
    sources = [OperatorSpec(source, (), 100 * rate, 0.0) for source, rate in rates.items()]
    main = OperatorSpec(
        MAIN,
        tuple(rates),
        curve.per_subtask_per_s,
        contention=curve.contention,
        curvature=curve.curvature,
        selectivity=0.0,
    )
    return JobSpec(name, (*sources, main), slots_max=SLOTS)


def source_rates(query: str, width: int) -> Floats:
    """Return (width,) the rates of a query's sources, 0 for the other operators."""
    rates = list(_rates(query).values())
    return np.pad(np.array(rates, float), (0, width - len(rates)))


def _rates(query: str) -> Mapping[str, float]:
    rates: Mapping[str, float] = PUBLISHED["rates_per_s"][query.split(maxsplit=1)[0]]
    return rates
