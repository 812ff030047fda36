"""What a simulated job is made of: frozen descriptions, no state.

Symbols used throughout ``lab/simulation`` (J jobs, O operators of the widest job, K samples):

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

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from include.domain.graph import JobGraph, Operator


class SpecError(ValueError):
    """A description of a job that cannot be simulated; the message says which value to change."""


class Ship(StrEnum):
    """How records reach an operator, as Flink names it in a job plan."""

    FORWARD = "FORWARD"
    HASH = "HASH"
    REBALANCE = "REBALANCE"


class SourceCounters(StrEnum):
    """Which counters of Flink show the records that a source takes in.

    ``OPERATOR``: only numRecordsOut of the source operator, as of a reader that counts nothing itself.  ``TASK``:
    numRecordsIn of the task and of the source operator too, as of FLIP-27 readers (Kafka).  ``BATCHES``: both of these
    count batches of records, as of readers that fetch in bulk.
    """

    OPERATOR = "operator"
    TASK = "task"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One vertex of a simulated job: an operator, or a chain of them.

    Attributes:
        name: vertex name in Flink; that of a chain joins its operators by " -> ".
        upstream: names of the operators that feed it, empty for a source.
        per_subtask_per_s: g, records per second of one subtask alone (for a source: that it can take in).
        contention: a >= 0 of C(p) = g p / (1 + a (p-1) + b p (p-1)), section 8 of the ContTune sheet.
        curvature: b of the same; the curve is clamped to be monotone.
        selectivity: records out per record in, from one tail to every successor that ``output_shares`` does not name
            (Eq. 8 of DS2); Flink counts them once, however many exchanges they are copied into.
        ship: how its input is distributed.
        imbalance: relative distance of the busiest subtask from the mean.
        max_parallelism: number of key groups.
        measured_per_s: C(1), C(2), ... as measured, records/s; taken instead of g, a, b when given.
        output_shares: successor -> records over that edge per record in, of successors that have a tail of the chain of
            their own (a side output, a branch); numRecordsOut of the vertex is the sum over the tails.
        counts: of a source, which counters show what it takes in.
        batch_records: of a source that counts batches, records in each.
        shows_backlog: of a source, whether it has the metric pendingRecords.
        waits_in_poll: of a source, whether it waits for records inside ``pollNext``: Flink counts that as busy time.
        burst_s: period at which what was gathered is emitted at once, as by a window; 0 for at once.
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
    output_shares: Mapping[str, float] = field(default_factory=dict, hash=False)
    counts: SourceCounters = SourceCounters.OPERATOR
    batch_records: float = 100.0
    shows_backlog: bool = True
    waits_in_poll: bool = False
    burst_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.per_subtask_per_s > 0:
            raise SpecError(f"operator {self.name!r}: per_subtask_per_s must be positive, is {self.per_subtask_per_s}")
        if self.contention < 0 or self.selectivity < 0 or not 0 <= self.imbalance < 1:
            raise SpecError(f"operator {self.name!r}: contention, selectivity >= 0 and 0 <= imbalance < 1 are needed")
        if self.max_parallelism < 1:
            raise SpecError(f"operator {self.name!r}: max_parallelism must be at least 1")
        wrong = sorted(name for name, share in self.output_shares.items() if not 0 <= share < math.inf)
        if wrong:
            raise SpecError(f"operator {self.name!r}: output_shares of {wrong} must be finite and not negative")
        if not self.batch_records >= 1 or not 0 <= self.burst_s < math.inf:
            raise SpecError(f"operator {self.name!r}: batch_records >= 1 and burst_s >= 0 are needed")
        if self.upstream and (self.counts != SourceCounters.OPERATOR or self.waits_in_poll or not self.shows_backlog):
            raise SpecError(f"operator {self.name!r}: counts, shows_backlog and waits_in_poll are those of a source")
        if self.burst_s and not self.upstream:
            raise SpecError(f"source {self.name!r}: burst_s is that of an operator behind a source")

    @property
    def head(self) -> str:
        """Name of the first operator of the chain: of a source vertex the source operator, which has its metrics."""
        return self.name.partition(" -> ")[0]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One simulated job.

    Attributes:
        name: job name in Flink.
        operators: in topological order.
        slots_max: most subtasks that any operator may have.
        checkpoint_interval_s: I.
        checkpoint_bytes_per_s: how fast state is written.
        barrier_delay_s: for how long a barrier waits besides its wait behind records in buffers; a checkpoint takes so
            much longer, and a rescale processes again what was emitted meanwhile.
        record_bytes: of a record in a buffer, which decides how many wait between operators; infinite: none.
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
    barrier_delay_s: float = 0.0
    record_bytes: float = 100.0
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
        edges = self.edge_ratios
        for spec in self.operators:
            strangers = sorted(name for name in spec.output_shares if (spec.name, name) not in edges)
            if strangers:
                raise SpecError(f"operator {spec.name!r}: output_shares names {strangers}, which it does not feed")
        if self.checkpoint_interval_s <= 0 or self.state_retention_s <= 0:
            raise SpecError(f"job {self.name!r}: checkpoint_interval_s and state_retention_s must be positive")
        if not 0 <= self.barrier_delay_s < math.inf:
            raise SpecError(f"job {self.name!r}: barrier_delay_s must be finite and not negative")
        if not self.record_bytes > 0:
            raise SpecError(f"job {self.name!r}: record_bytes must be positive")
        if self.slots_max < 1:
            raise SpecError(f"job {self.name!r}: slots_max must be at least 1")

    def graph(self) -> JobGraph:
        """Return the job graph in the project's own vocabulary."""
        return JobGraph(tuple(Operator(spec.name, spec.upstream, spec.max_parallelism) for spec in self.operators))

    @property
    def edge_ratios(self) -> dict[tuple[str, str], float]:
        """(upstream, downstream) -> records over the edge per record into its upstream.

        Of two exchanges between the same operators (a self-join) they are the sum.
        """
        by_name = {spec.name: spec for spec in self.operators}
        ratios: dict[tuple[str, str], float] = {}
        for spec in self.operators:
            for upstream in dict.fromkeys(spec.upstream):
                above = by_name[upstream]
                share = above.output_shares.get(spec.name, above.selectivity)
                ratios[upstream, spec.name] = share * spec.upstream.count(upstream)
        return ratios

    @property
    def output_ratios(self) -> dict[str, float]:
        """Operator -> numRecordsOut of its vertex per record in: the sum over the tails of its chain.

        What one tail sends to several exchanges is counted once, as Flink 2.1 does; with a tail of its own for every
        successor nothing else is sent.
        """
        ratios = {spec.name: sum(spec.output_shares.values()) for spec in self.operators}
        fed = {
            spec.name: [name for upstream, name in self.edge_ratios if upstream == spec.name] for spec in self.operators
        }
        for spec in self.operators:
            if not fed[spec.name] or set(fed[spec.name]) - set(spec.output_shares):
                ratios[spec.name] += spec.selectivity
        return ratios

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources in topological order."""
        return self.graph().sources
