"""What the reactive controller keeps of a job between evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.policies.evaluation.pending_steps import PendingStep
from models.policies.evaluation.window_memory import WindowMemory


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
class ControllerMemory(WindowMemory):
    """Memory between evaluations.

    Attributes:
        due: steps of the newest plan that were not sent yet, by time; empty without a plan.
        planned: whether the newest plan could be used; else the measured load decides.
        low_loads: of a job without a plan: what would have done instead, and since when.
        held_until_s: until then no fall is sent, since the load was above what the plans expected.
        back_to: configuration to return to after a backlog for which the job was scaled up; None without one.
        enlarged_to: what it was enlarged to; None without ``back_to``.
    """

    due: tuple[PendingStep, ...] = ()
    planned: bool = False
    low_loads: tuple[LowLoadPeriod, ...] = ()
    held_until_s: int = 0
    back_to: Mapping[str, int] | None = None
    enlarged_to: Mapping[str, int] | None = None
