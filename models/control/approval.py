"""What persons have said to steps that wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from models.control.state import Parallelism


@dataclass(frozen=True, slots=True)
class StepApproval:
    """A person's yes or no to a step, as it was shown to them.

    Attributes:
        step_id: of the step.
        target: parallelism that was shown; None when only the step's id is known.
        is_approved: yes or no.
        at_s: epoch seconds of the answer.
        until_s: epoch seconds; later it does not count.
        by: who.
    """

    step_id: str
    target: Parallelism | None
    is_approved: bool
    at_s: float
    until_s: float
    by: str = ""


def find_approval(
    approvals: Iterable[StepApproval], step_id: str, target: Parallelism, now_s: float, sent_at_s: float
) -> StepApproval | None:
    """Return what was said to a step and counts now: a no before a yes; None when nobody has said anything.

    A yes is to what was shown: for the same step with another target it does not count. It is for one request: once
    anything was sent after it (``sent_at_s``: the job's last request), it is used up.
    """
    said = [one for one in approvals if one.step_id == step_id and now_s < one.until_s]
    denied = next((one for one in said if not one.is_approved), None)
    fresh = (one for one in said if one.at_s > sent_at_s)
    shown = (one for one in fresh if one.target is None or dict(one.target) == dict(target))
    return denied or next(shown, None)
