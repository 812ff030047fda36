"""What is kept of a job between evaluations, and how its windows are learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from include.domain.graph import JobGraph
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.observations import Observations
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import learn_histories, select_new_windows
from models.policies.tuning.tuning_options import KEEP


@dataclass(frozen=True, slots=True)
class LowLoadPeriod:
    """A configuration that would have done for some time.

    Attributes:
        parallelism: operator -> parallelism.
        since_s: epoch seconds, from when on.
    """

    parallelism: Mapping[str, int]
    since_s: int


@dataclass(frozen=True, slots=True)
class ControllerMemory:
    """Memory between evaluations.

    Attributes:
        due: steps of the newest plan that were not sent yet, by time; empty without a plan.
        planned: whether the newest plan could be used; else the measured load decides.
        seen_until_s: end of the last window that was learnt from.
        histories: operator -> what was observed of it.
        shares: operator -> its input per record of all sources together, as last measured.
        low_loads: of a job without a plan: what would have done instead, and since when.
        held_until_s: until then no fall is sent, since the load was above what the plans expected.
        back_to: configuration to return to after a backlog for which the job was scaled up; None without one.
        enlarged_to: what it was enlarged to; None without ``back_to``.
    """

    due: tuple[PendingStep, ...] = ()
    planned: bool = False
    seen_until_s: float | None = None
    histories: Mapping[str, History] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    low_loads: tuple[LowLoadPeriod, ...] = ()
    held_until_s: int = 0
    back_to: Mapping[str, int] | None = None
    enlarged_to: Mapping[str, int] | None = None


def learn_windows(memory: ControllerMemory, graph: JobGraph, observations: Observations) -> ControllerMemory:
    """Return the memory after windows that it had not read yet."""
    fresh = select_new_windows(observations, memory.seen_until_s)
    if not len(fresh):
        return memory
    until_s = float(fresh.window_start_s[-1] + fresh.window_s)
    return replace(memory, seen_until_s=until_s, histories=learn_histories(memory.histories, graph, fresh, KEEP))
