"""What a decision is made from, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from models.control.limits import Limits
from models.control.readiness import Readiness
from models.control.reasons import Reason, Refusal
from models.control.state import Intention, JobHistory, ObservedJob, Parallelism, Request


class Verb(StrEnum):
    """What a decision does."""

    WAIT = "wait"
    RESCALE = "rescale"
    CONFIRM = "confirm"
    ROLL_BACK = "roll_back"
    REFUSE = "refuse"


SENDS = frozenset({Verb.RESCALE, Verb.ROLL_BACK})


@dataclass(frozen=True, slots=True)
class Action:
    """What comes of a decision.

    Attributes:
        verb: what is done.
        reason: the rule that decided.
        detail: one sentence for a person.
        request: what is sent (rescale, roll back), or what it is about (confirm).
        is_dry_run: whether ``request`` is recorded only.
    """

    verb: Verb
    reason: Reason
    detail: str = ""
    request: Request | None = None
    is_dry_run: bool = False


def refuse(refusal: Refusal) -> Action:
    """Return the decision to send nothing."""
    return Action(Verb.REFUSE, refusal.reason, refusal.detail)


@dataclass(frozen=True, slots=True)
class OutcomeCheck:
    """What became of a confirmed rescale, judged from windows before and after it.

    Attributes:
        is_worse: whether the job is worse than before for a reason that the rescale explains; None while it is too
            early to tell.
        detail: one sentence for a person.
        is_failing: whether it is worse since it fails again and again.
        caught_up_at_s: a time since it was confirmed at which no record was late; None while there is none.
    """

    is_worse: bool | None = None
    detail: str = ""
    is_failing: bool = False
    caught_up_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a decision is made from.

    Attributes:
        now_s: epoch seconds.
        desired: what the job should run at; None when it is to stay as it is.
        observed: what the cluster says now.
        history: the controller's own.
        limits: of the job.
        outcome: of the last confirmed request.
        remark: what a person should know of a job that is left as it is; empty without it.
    """

    now_s: float
    desired: Intention | None
    observed: ObservedJob
    history: JobHistory
    limits: Limits
    outcome: OutcomeCheck = OutcomeCheck()
    remark: str = ""


def form_request(
    case: Case,
    step_id: str,
    target: Parallelism,
    settle_s: float,
    *,
    is_rollback: bool = False,
    approvals: Iterable[str] = (),
) -> Request:
    """Return the request that takes a job from what it was asked for to ``target``.

    Flink's own waits come before the time in which the rescale itself has to be seen.
    """
    ready = case.observed.readiness
    failures = None if ready is None else ready.failures
    return Request(
        step_id=step_id,
        job_id=case.observed.job_id or "",
        target=dict(target),
        before=dict(case.observed.requested or {}),
        running_before=dict(case.observed.running),
        sent_at_s=case.now_s,
        deadline_s=case.now_s + (0.0 if ready is None else ready.wait_s) + case.limits.confirm_timeout_s,
        settle_s=settle_s,
        is_rollback=is_rollback,
        failures_before=None if failures is None else tuple(sorted({one.kind for one in failures})),
        failed_until_s=_failed_until_s(case),
        wait_detail="" if ready is None else ready.wait_detail,
        forced_at_s=None if ready is None or not _waits(ready) else case.now_s + ready.checkpoint_wait_s,
        approvals=tuple(approvals),
        running_since_s=case.observed.running_since_s if case.observed.running else None,
    )


def _failed_until_s(case: Case) -> float | None:
    """Return when the last failure was, by Flink's clock; where it does not tell its failures, what that clock says."""
    ready = case.observed.readiness
    if ready is None or ready.failures is None:
        return case.observed.told_at_s if ready is None or ready.now_s is None else ready.now_s
    return max((one.at_s for one in ready.failures), default=None)


def _waits(ready: Readiness) -> bool:
    """Whether Flink waits for a checkpoint before it begins with a request."""
    return ready.waits_for_checkpoint and ready.restarts
