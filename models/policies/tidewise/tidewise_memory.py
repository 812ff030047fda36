"""Memory of the reactive controller between evaluations, and the decision of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.policies.tidewise.pending_steps import PendingStep
from models.policies.tidewise.scale_down import LowLoadPeriod
from models.policies.tuning.capacity_history import History


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


@dataclass(frozen=True, slots=True)
class ReactiveDecision:
    """Decision of an evaluation.

    Attributes:
        wanted: operator -> parallelism to be sent now; None to leave the job as it is.
        reason: one sentence.
        due: the step of the plan that is wanted or held back; None for a step of the controller's own, and without any.
        remark: what a person should know of a job that is left as it is: it is late, short of what cannot grow, or its
            load is not seen; empty otherwise.
        held_back: why the step of the plan that is due is not wanted, where nothing else is; empty otherwise.
    """

    wanted: Mapping[str, int] | None
    reason: str
    due: PendingStep | None = None
    remark: str = ""
    held_back: str = ""
