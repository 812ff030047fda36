"""Settings of Dragster and what it remembers between slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from models.policies.dragster.ucb import Bonus

# The paper gives no scale of its kernel.  Calibrated on the published 7 and 8 slots of the word count (Fig. 4), as were
# the linear prior mean and the printed form of the bonus: of 0.1, 0.2, 0.3, 0.5 and 1 this comes nearest.  The
# experiment prints the other choices as well; they differ much.
PRIOR_DEVIATION = 0.3


class Target(StrEnum):
    """The method by which the upper level sets the target capacities."""

    SADDLE = "saddle"
    GRADIENT = "gradient"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings.  Of the numbers the paper gives only delta's range and the slot.

    Attributes:
        target: online saddle point (Eq. 14) or gradient descent (Eq. 16).
        slot_s: length of a slot; what waits at a source is to be worked off within one.
        budget_tasks: B, tasks of all operators except sources; None: no budget.
        length_scale_share: length scale of the kernel as a share of the admissible tasks (2 of 10).
        prior_deviation: standard deviation of the kernel; like ``noise`` a share of the largest output that the
            operator ever had to produce.
        noise: sigma of Eq. 17.
        linear_prior: the prior mean is the line through the origin that fits the samples; else zero, as in Eq. 17.
        bonus: form of Eq. 18.
        delta: of beta, Theorem 1.
        eta: step of Eq. 16.
        headroom: share above the demand that is requested, up to the largest demand ever observed: after a fall of the
            load a margin is kept, at the highest load there is none.
        samples_max: a number of tasks observed more often weighs like this many, so that an old capacity is forgotten.
    """

    target: Target = Target.SADDLE
    slot_s: float = 600.0
    budget_tasks: int | None = None
    length_scale_share: float = 0.2
    prior_deviation: float = PRIOR_DEVIATION
    noise: float = 0.03
    linear_prior: bool = True
    bonus: Bonus = Bonus.VARIANCE
    delta: float = 2.0
    eta: float = 0.5
    headroom: float = 0.15
    samples_max: int = 50

    def __post_init__(self) -> None:
        if not self.slot_s > 0 or not 0 < self.eta <= 1 or self.headroom < 0 or self.samples_max < 1:
            raise ValueError("slot_s must be positive, eta in (0, 1], head_room 0 or more, samples_max 1 or more")
        if self.budget_tasks is not None and self.budget_tasks < 1:
            raise ValueError("budget_tasks must be at least 1; None means no budget")


@dataclass(frozen=True, slots=True)
class Sample:
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
class Memory:
    """Memory of one job.

    Attributes:
        slot: t, slots decided so far.
        last_seen_s: end of the last window used, epoch seconds; None before the first.
        multipliers: operator -> lambda.
        scale_per_s: operator -> largest output that it ever had to produce.
        samples: all of them, by operator and tasks.
    """

    slot: int = 0
    last_seen_s: float | None = None
    multipliers: Mapping[str, float] = field(default_factory=dict)
    scale_per_s: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
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
