"""The decision of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.policies.evaluation.pending_steps import PendingStep


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
        falls_behind: whether the job does so.
    """

    wanted: Mapping[str, int] | None
    reason: str
    due: PendingStep | None = None
    remark: str = ""
    held_back: str = ""
    falls_behind: bool = False
