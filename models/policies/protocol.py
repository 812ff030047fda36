"""The protocol of a policy, which decides a job's schedule.

A policy is a pure function of a situation and its own memory: the same input gives the same schedule, so a retry plans
the same and all policies can be replayed on one history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from include.domain.graph import JobGraph
from include.settings import Planner
from models.job_models import JobModels
from models.policies.observations import Observations
from models.scheduling.demand import SourceForecast
from models.scheduling.rescale_timing import Step
from models.scheduling.slot_prices import SlotPrices

MemoryT = TypeVar("MemoryT")


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of a policy.

    Attributes:
        as_of_s: time of the decision, epoch seconds.
        graph: the job.
        parallelism: operator -> running parallelism.
        models: of the job, from training.
        forecast: of its sources.
        slots_max: most slots that the job may have.
        options: the planner's settings.
        observations: the latest windows; none for a policy that does not need them.
        seed: from the job and the time, for a policy that draws random numbers.
        expects: whether the expectation of a step is needed; a replay of thousands of steps does not need it.
    """

    as_of_s: int
    graph: JobGraph
    parallelism: Mapping[str, int]
    models: JobModels
    forecast: SourceForecast
    slots_max: int
    options: Planner
    observations: Observations = field(default_factory=Observations.nothing)
    seed: int = 0
    expects: bool = True
    slot_prices: SlotPrices = field(default_factory=SlotPrices.free)


@dataclass(frozen=True, slots=True)
class Decision:
    """A step and why it is taken."""

    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """Decisions in order of time.

    Attributes:
        operators: (O,) names in the order of the steps' arrays.
        decisions: at least one; a schedule without any change holds one that says so.
    """

    operators: tuple[str, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Input of a policy's learning between decisions: weeks of windows, and the models of the job at their end.

    Attributes:
        as_of_s: their end, epoch seconds.
        graph, models, slots_max, options: as in :class:`Situation`.
        observations: the windows.
    """

    as_of_s: int
    graph: JobGraph
    models: JobModels
    slots_max: int
    options: Planner
    observations: Observations


class Policy(Protocol[MemoryT]):
    """A system that decides."""

    def first_memory(self) -> MemoryT:
        """Return the memory of a job that was never decided on."""
        ...

    def decide(self, situation: Situation, memory: MemoryT) -> tuple[Schedule, MemoryT]:
        """Return the schedule and the memory for the next decision."""
        ...


class Learner(Policy[MemoryT], Protocol[MemoryT]):
    """A policy that also learns by night, from the history; its entry says so."""

    def learn(self, history: History) -> MemoryT:
        """Return the memory of a job after a history, learnt from nothing.

        The memory knows until when it has learnt, so that a decision after it does not count a window twice.
        """
        ...
