"""The six queries as simulated jobs: one operator is tuned, the others have ample capacity."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.papers.conttune.conttune_published import PUBLISHED
from benchmarks.papers.conttune.measured_curves import P_MEASURED, readings, scaling
from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats

SLOTS = 90  # 45 TaskManagers with two slots
_PEAK = 10  # the workload is 1..10 times the unit
_AMPLE = 100.0  # capacity of an operator that never matters, in peak rates

# Shape of the capacity curves that were not published.  p10, the parallelism that ten units need, is Table 5.
# Contention a and noise are calibrated so that DS2 needs as many reconfigurations as in Table 4a (Q5: DS2 and alpha 0);
# Q5 and Q8 are noisy because of their windows.  The curvature is that of the fits to Q1 and Q2, in units of -a.
CURVATURE = -0.012
HEADROOM = 1.01  # capacity at p10, in peak rates


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Shape of a capacity curve that the paper does not publish.

    Attributes:
        p10: parallelism that ten units of the workload need.
        contention: a of the scalability law.
        noise: relative standard deviation of an observed capacity.
    """

    p10: int
    contention: float
    noise: float


CALIBRATED = {
    "WordCount": Calibrated(13, 0.045, 0.0),
    "Q3": Calibrated(18, 0.02, 0.01),
    "Q5": Calibrated(22, 0.08, 0.085),
    "Q8": Calibrated(10, 0.05, 0.19),
}
# Three readings of the two measured curves agree with Table 4a.  They differ by 2% at the peak, hence by one core; this
# is the one that needs what Table 5 says (25 and 23) on both, and was chosen for that.  All three are reported.
READING = "physical law"
_OTHERS = {"WordCount": 1, "Q1": 1, "Q2": 1, "Q3": 2, "Q5": 1, "Q8": 1}  # operators besides sources and the tuned one


@dataclass(frozen=True, slots=True)
class Query:
    """One query.

    Attributes:
        name: as the paper calls it.
        unit_per_s: source -> records/s of one workload unit, Table 3.
        capacity_per_s: (32,) PA of the tuned operator at 1..32.
        noise: relative standard deviation of an observed capacity.
    """

    name: str
    unit_per_s: dict[str, float]
    capacity_per_s: Floats
    noise: float = 0.0

    @property
    def peak_per_s(self) -> float:
        """Input of the tuned operator at ten units, records/s."""
        return _PEAK * sum(self.unit_per_s.values())

    @property
    def needed(self) -> int:
        """Smallest parallelism that sustains the peak."""
        return int(np.argmax(self.capacity_per_s >= self.peak_per_s)) + 1

    def job(self, name: str) -> JobSpec:
        """Return the query as a simulated job: sources, the tuned operator, and what follows it."""
        ample = _AMPLE * self.peak_per_s
        operators = [OperatorSpec(source, (), ample, contention=0.0) for source in self.unit_per_s]
        operators.append(
            OperatorSpec("tuned", tuple(self.unit_per_s), 1.0, measured_per_s=tuple(self.capacity_per_s.tolist()))
        )
        for index in range(_OTHERS[self.name]):
            above = operators[-1].name
            operators.append(OperatorSpec(f"after{index + 1}", (above,), ample, contention=0.0))
        return JobSpec(name, tuple(operators), slots_max=SLOTS, downtime_noise=0.0, capacity_noise=0.0)


def query(name: str, reading: str = READING) -> Query:
    """Return a query; a reading of the measured curves concerns Q1 and Q2 only."""
    units = {source: float(rate) for source, rate in PUBLISHED["table3_workload_unit"][name].items()}
    measured = PUBLISHED.get(f"{name.lower()}_abilities_per_s")
    if measured is not None:
        return Query(name, units, readings(measured)[reading])
    shape = CALIBRATED[name]
    grid = np.arange(1.0, P_MEASURED + 1)
    curve = scaling(grid, 1.0, shape.contention, CURVATURE * shape.contention)
    result = Query(name, units, curve, shape.noise)
    return replace(result, capacity_per_s=curve * HEADROOM * result.peak_per_s / curve[shape.p10 - 1])
