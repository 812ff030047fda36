"""A person's yes or no to a step that waits for it."""

from __future__ import annotations

from collections.abc import Iterable

from include.control.approvals import ApprovalStore, WaitingStep, answer_step
from include.control.interventions import Intervention, UserAction, record_intervention
from include.settings import Settings


class NotWaitingError(ValueError):
    """The step does not wait; the message has what does."""


def find_waiting_step(waiting: Iterable[WaitingStep], job: str | None, step_id: str | None) -> WaitingStep:
    """Return the step of a job (``cluster/job``) that waits under an id.

    Raises:
        NotWaitingError: none does.
    """
    steps = {(f"{one.cluster}/{one.job}", one.step_id): one for one in waiting}
    step = steps.get((job or "", step_id or ""))
    if step is None:
        known = "; ".join(f"{name} {waits}" for name, waits in steps) or "nothing"
        raise NotWaitingError(f"step {step_id!r} of {job!r} does not wait for an answer; what waits: {known}")
    return step


def give_answer(
    settings: Settings, step: WaitingStep, *, is_approved: bool, by: str, reason: str, now_s: float, hours: float = 0.0
) -> float:
    """Write an answer; returns for how many hours it counts. Without hours it counts as long as the settings say.

    Raises:
        StoreUnreadableError: it was not written, so it does not count.
    """
    counts_h = hours or settings.approval_expires_h(step.cluster, step.job)
    until_s = now_s + 3600 * counts_h
    ApprovalStore(settings.paths.lake).write(answer_step(step, is_approved, by, now_s, until_s))
    act, scope = UserAction.APPROVE if is_approved else UserAction.DENY, f"{step.cluster}/{step.job}"
    change = step.describe().partition(": ")[2]
    record_intervention(settings.paths.lake, Intervention(now_s, act, scope, by, reason, change, step.step_id, until_s))
    return counts_h
