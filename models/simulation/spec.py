"""What a simulated job is made of: frozen descriptions, no state.

Symbols used throughout ``models/simulation`` (J jobs, O operators of the widest job, K samples):

========  ======================================================  ==============
symbol    meaning                                                 unit
========  ======================================================  ==============
g, a, b   per-subtask rate, contention, curvature of C(p)         records/s, -, -
C(p)      capacity of an operator of parallelism p                records/s
I         checkpoint interval                                     s
D         downtime of a restart                                   s
========  ======================================================  ==============
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from include.domain.graph import JobGraph, Operator


class SpecError(ValueError):
    """A description of a job that cannot be simulated; the message says which value to change."""


class Ship(StrEnum):
    """How records reach an operator, as Flink names it in a job plan."""

    FORWARD = "FORWARD"
    HASH = "HASH"
    REBALANCE = "REBALANCE"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator of a simulated job.

    Attributes:
        name: vertex name in Flink.
        upstream: names of the operators that feed it, empty for a source.
        per_subtask_per_s: g, records per second of one subtask alone (for a source: that it can emit).
        contention: a >= 0 of C(p) = g p / (1 + a (p-1) + b p (p-1)), section 8 of the ContTune sheet.
        curvature: b of the same; the curve is clamped to be monotone.
        selectivity: records out per record in, to every successor (Eq. 8 of DS2).
        ship: how its input is distributed.
        imbalance: relative distance of the busiest subtask from the mean.
        max_parallelism: number of key groups.
        measured_per_s: C(1), C(2), ... as measured, records/s; taken instead of g, a, b when given.
    """

    name: str
    upstream: tuple[str, ...]
    per_subtask_per_s: float
    contention: float = 0.02
    curvature: float = 0.0
    selectivity: float = 1.0
    ship: Ship = Ship.REBALANCE
    imbalance: float = 0.0
    max_parallelism: int = 128
    measured_per_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.per_subtask_per_s > 0:
            raise SpecError(f"operator {self.name!r}: per_subtask_per_s must be positive, is {self.per_subtask_per_s}")
        if self.contention < 0 or self.selectivity < 0 or not 0 <= self.imbalance < 1:
            raise SpecError(f"operator {self.name!r}: contention, selectivity >= 0 and 0 <= imbalance < 1 are needed")
        if not self.upstream and self.selectivity != 1.0:
            raise SpecError(f"source {self.name!r}: its rate is its output rate, so its selectivity must be 1")
        if self.max_parallelism < 1:
            raise SpecError(f"operator {self.name!r}: max_parallelism must be at least 1")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One simulated job.

    Attributes:
        name: job name in Flink.
        operators: in topological order.
        slots_max: most subtasks that any operator may have.
        checkpoint_interval_s: I.
        checkpoint_bytes_per_s: how fast state is written.
        restart_base_s: downtime of a rescale without state.
        restore_bytes_per_s: how fast state is read back: D grows by state / this.
        detection_s: added to D when the restart is a failure that must first be noticed.
        downtime_noise: relative standard deviation of D.
        state_bytes_per_record, state_retention_s: state grows by the first per source record, decays with the second.
        capacity_noise: relative standard deviation of the capacity over time.
        fetch_delay_s: lag of an unloaded source, in seconds of its input; grows with utilisation.
        failures_per_week: mean number of failures.
    """

    name: str
    operators: tuple[OperatorSpec, ...]
    slots_max: int = 64
    checkpoint_interval_s: float = 120.0
    checkpoint_bytes_per_s: float = 600e6
    restart_base_s: float = 28.0
    restore_bytes_per_s: float = 250e6
    detection_s: float = 18.0
    downtime_noise: float = 0.08
    state_bytes_per_record: float = 16.0
    state_retention_s: float = 3600.0
    capacity_noise: float = 0.02
    fetch_delay_s: float = 0.15
    failures_per_week: float = 1.0

    def __post_init__(self) -> None:
        self.graph()  # refuses a wrong order, unknown upstreams and cycles
        if self.checkpoint_interval_s <= 0 or self.state_retention_s <= 0:
            raise SpecError(f"job {self.name!r}: checkpoint_interval_s and state_retention_s must be positive")
        if self.slots_max < 1:
            raise SpecError(f"job {self.name!r}: slots_max must be at least 1")

    def graph(self) -> JobGraph:
        """Return the job graph in the project's own vocabulary."""
        return JobGraph(tuple(Operator(spec.name, spec.upstream, spec.max_parallelism) for spec in self.operators))

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources in topological order."""
        return self.graph().sources
