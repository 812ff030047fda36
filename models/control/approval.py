"""What persons have said to steps that wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.control.state import ObservedJob, Parallelism


@dataclass(frozen=True, slots=True)
class StepApproval:
    """A person's yes or no to a step, as it was shown to them.

    Attributes:
        step_id: of the step.
        before, target: the change that was shown.
        is_approved: yes or no.
        at_s: epoch seconds of the answer.
        until_s: epoch seconds; later it does not count.
        by: who.
    """

    step_id: str
    before: Parallelism
    target: Parallelism
    is_approved: bool
    at_s: float
    until_s: float
    by: str = ""

    def is_about(self, observed: ObservedJob, target: Parallelism) -> bool:
        """Whether the change that was shown is the one from what is in force now to ``target``."""
        now = [dict(observed.requested or {}), {**(observed.requested or {}), **observed.running}]
        return dict(self.target) == dict(target) and dict(self.before) in now


def find_approval(
    approvals: Iterable[StepApproval],
    step_id: str,
    observed: ObservedJob,
    target: Parallelism,
    *,
    now_s: float,
    sent_at_s: float,
) -> StepApproval | None:
    """Return what was said to a step and counts now: a no before a yes; None when nobody has said anything.

    A yes is to the change that was shown, so it also counts for the step of a newer plan that wants the same, and not
    for the same step once it means another change. It is for one request: once anything was sent after it
    (``sent_at_s``: the job's last request), it is used up. A no is to the step and to the change.
    """
    said = [one for one in approvals if now_s < one.until_s]
    denied = [one for one in said if not one.is_approved and (one.step_id == step_id or one.is_about(observed, target))]
    agreed = [one for one in said if one.is_approved and one.at_s > sent_at_s and one.is_about(observed, target)]
    return next(iter([*denied, *agreed]), None)
