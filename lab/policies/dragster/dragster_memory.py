"""What Dragster remembers between slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CapacitySample:
    """Capacity observed with one number of tasks.

    Attributes:
        operator: its name.
        tasks: x.
        count: observations, at most ``samples_max``.
        mean_per_s: their mean, output units.
    """

    operator: str
    tasks: int
    count: int
    mean_per_s: float


@dataclass(frozen=True, slots=True)
class OperatorFlow:
    """What an operator took and sent in a slot, from which its throughput function is learnt.

    Attributes:
        operator: its name.
        received_per_s, sent_per_s: means of the slot, records/s.
    """

    operator: str
    received_per_s: float
    sent_per_s: float


@dataclass(frozen=True, slots=True)
class DragsterMemory:
    """Memory of one job.

    Attributes:
        slot: t, slots decided so far.
        last_seen_s: end of the last window used, epoch seconds; None before the first.
        multipliers: operator -> lambda.
        scale_per_s: operator -> largest output that it ever had to produce.
        samples: all of them, by operator and tasks.
        flows: of the newest slots, oldest first.
    """

    slot: int = 0
    last_seen_s: float | None = None
    multipliers: Mapping[str, float] = field(default_factory=dict)
    scale_per_s: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[CapacitySample, ...] = ()
    flows: tuple[OperatorFlow, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotObservations:
    """Observations of one slot.

    Attributes:
        source_per_s: source -> records/s that arrived.
        backlog: source -> records that wait there at the end.
        tasks: operator -> x, of every operator except sources.
        capacity_per_s: operator -> c of Eq. 8, output units; an operator that did nothing is missing.
        limits: operator -> most tasks.
    """

    source_per_s: Mapping[str, float]
    backlog: Mapping[str, float]
    tasks: Mapping[str, int]
    capacity_per_s: Mapping[str, float]
    limits: Mapping[str, int]
