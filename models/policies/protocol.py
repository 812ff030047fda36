"""The protocol of a policy, which decides a job's schedule.

A policy is a pure function of a situation and its own memory: the same input gives the same schedule, so a retry plans
the same and all policies can be replayed on one history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from include.domain.graph import JobGraph
from include.settings import Planner
from models.arrays import Floats, Ints
from models.bundle.job_models import JobModels
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.scheduling.demand import SourceForecast
from models.scheduling.rescale_timing import ScheduleStep
from models.scheduling.slot_bounds import SlotBounds
from models.scheduling.slot_prices import SlotPrices
from models.scheduling.step_band import StepBand

MemoryT = TypeVar("MemoryT")
_NOT_NEGATIVE = (
    *("processing_rate_per_s", "output_rate_per_s", "true_processing_rate_per_s", "true_output_rate_per_s"),
    *("target_data_rate_per_s", "busy_share", "idle_share", "backpressured_share"),
)


@dataclass(frozen=True, slots=True)
class PastLoads:
    """Loads of a job before its windows, all sources together.

    Attributes:
        at: (N,) numbers of steps of :data:`models.programme.load_paths.STEP_S` from the epoch on, ascending.
        load_per_s: (N,) mean of each.
    """

    at: Ints
    load_per_s: Floats


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of a policy; wrong values are refused when it is made, not by whichever line meets them first.

    Attributes:
        job: as it is at the moment of the decision, epoch seconds, not negative. It has models; ``running`` names each
            operator of the graph and no other, with 1 at least; ``slots_max`` is 1 at least. Of its windows, which are
            in the order of the graph, rates and shares are not negative; NaN where nothing was measured.
        forecast: quantiles of the rate of each of its sources, records/s; finite and not negative.
        slot_prices: what the job pays for slots on top of their own price, per slot and minute of each bin; free
            where the cluster has no budget.
        past_loads: for a policy that learns what the load does, of a job that it does not remember; None else.

    Raises:
        ValueError: a value is not as said above; the message names it.

    >>> from models.policies.situations import assume_untrained
    >>> from include.domain.graph import Operator
    >>> from include.settings import Planner
    >>> import numpy as np
    >>> graph, nothing = JobGraph((Operator("source"),)), Observations.nothing(1)
    >>> forecast = SourceForecast(0, 600, {"source": np.full((4, 1), 100.0)})
    >>> models = assume_untrained(graph, nothing)
    >>> Situation(Snapshot(0, graph, {"map": 2}, True, nothing, 32, Planner(), models=models), forecast)
    Traceback (most recent call last):
    ValueError: parallelism: of source nothing is given, map is no operator of the job
    """

    job: Snapshot
    forecast: SourceForecast
    slot_prices: SlotPrices = field(default_factory=SlotPrices.free)
    past_loads: PastLoads | None = None

    @property
    def as_of_s(self) -> int:
        """Time of the decision, epoch seconds."""
        return self.job.now_s

    @property
    def graph(self) -> JobGraph:
        """The job; its operators in topological order, with their slot-sharing groups."""
        return self.job.graph

    @property
    def parallelism(self) -> Mapping[str, int]:
        """Operator -> running parallelism."""
        return self.job.running

    @property
    def models(self) -> JobModels:
        """Of the job, from training; operators that were never measured may be missing."""
        return cast("JobModels", self.job.models)

    @property
    def slots_max(self) -> int:
        """Most slots that the job may have, all slot-sharing groups together."""
        return self.job.slots_max

    @property
    def options(self) -> Planner:
        """The planner's settings."""
        return self.job.options

    @property
    def observations(self) -> Observations:
        """The latest windows, oldest first; none for a policy that does not need them."""
        return self.job.observations

    @property
    def seed(self) -> int:
        """Of a policy's random numbers."""
        return self.job.seed

    @property
    def bounds(self) -> SlotBounds:
        """Of the job's slots over the next day, by its schedules."""
        return self.job.bounds

    def __post_init__(self) -> None:
        faults = [*self._find_scalar_faults(), *self._find_operator_faults(), *self._find_window_faults()]
        if faults:
            raise ValueError("; ".join(faults))

    def _find_scalar_faults(self) -> Iterator[str]:
        for name, least in (("as_of_s", 0), ("slots_max", 1), ("seed", 0)):
            value = getattr(self, name)
            if not value >= least:
                yield f"{name} = {value!r} must be at least {least}"
        if self.job.models is None:
            yield "models: the job has none"
        prices = (self.slot_prices.low, self.slot_prices.high)
        if not all(len(one) and (one >= 0).all() for one in prices):
            yield "slot_prices: must have a price for a bin at least, and none that is negative"

    def _find_operator_faults(self) -> Iterator[str]:
        given, names = self.parallelism.keys(), set(self.graph.names)
        missing, unknown = ", ".join(sorted(names - given)), ", ".join(sorted(given - names))
        parts = (missing and f"of {missing} nothing is given", unknown and f"{unknown} is no operator of the job")
        if missing or unknown:
            yield f"parallelism: {', '.join(filter(None, parts))}"
        low = {name: count for name, count in self.parallelism.items() if not count >= 1}
        if low:
            yield f"parallelism: {low} must be at least 1"

    def _find_window_faults(self) -> Iterator[str]:
        observed = self.observations
        if not len(observed):
            return
        if observed.parallelism.shape[1] != len(self.graph.operators):
            yield f"observations: of {observed.parallelism.shape[1]} operators, the job has {len(self.graph.operators)}"
        for name in _NOT_NEGATIVE:
            if (getattr(observed, name) < 0).any():  # NaN is not
                yield f"observations: {name} is negative"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The next size that takes more paid slots than a decision's, or fewer, among those that were priced with it.

    Attributes:
        parallelism: (O,).
        slots: that it takes.
        slot_hours_more: than the decision's, paid while that runs; negative: fewer.
        late_minutes: expected in that time.
    """

    parallelism: Ints
    slots: int
    slot_hours_more: float
    late_minutes: float


@dataclass(frozen=True, slots=True)
class Decision:
    """A step and why it is taken.

    Attributes:
        step: when, and from what to what.
        reason: one sentence.
        band: what may be measured when it is due, for it to stay as it is; None of a policy that does not say.
        safer, cheaper: its neighbours; None where none was priced.
    """

    step: ScheduleStep
    reason: str
    band: StepBand | None = None
    safer: Neighbour | None = None
    cheaper: Neighbour | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Decisions in order of time.

    Attributes:
        operators: (O,) names in the order of the steps' arrays.
        decisions: at least one; a schedule without any change holds one that says so.
        late_minutes: expected of the job until its end; None of a policy that does not price them.
    """

    operators: tuple[str, ...]
    decisions: tuple[Decision, ...]
    late_minutes: float | None = None


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
