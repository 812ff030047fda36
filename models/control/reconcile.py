"""One decision on one job: what is desired against what is observed.

Level-triggered: the decision does not depend on which events were seen.  What was sent is found in the bounds that
Flink says it was asked for, so a controller that was killed at any moment starts again from the observed state and its
log.  The rules stand in the order in which they are asked; the first that has an answer gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from models.control.limits import DAY_S, HOUR_S, Limits, bound_target
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Parallelism, Request


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
        reason: name of the rule that decided, in snake_case.
        detail: one sentence for a person.
        request: what is sent (rescale, roll back), or what it is about (confirm).
        is_dry_run: whether ``request`` is recorded only.
    """

    verb: Verb
    reason: str
    detail: str = ""
    request: Request | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeCheck:
    """What became of a confirmed rescale, judged from windows before and after it.

    Attributes:
        is_worse: whether the job is worse than before for a reason that the rescale explains; None while it is too
            early to tell.
        detail: one sentence for a person.
    """

    is_worse: bool | None = None
    detail: str = ""


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
    """

    now_s: float
    desired: Intention | None
    observed: ObservedJob
    history: JobHistory
    limits: Limits
    outcome: OutcomeCheck = OutcomeCheck()


def reconcile(case: Case) -> Action:
    """Return what to do with the job now."""
    for rule in _RULES:
        action = rule(case)
        if action is not None:
            return action
    return _send(case)


def desired_parallelism(case: Case) -> Intention | None:
    """Return what is desired within the limits: a person's pin before plans and the reactive controller."""
    wanted = case.desired
    if case.limits.pin is not None:
        wanted = Intention(case.limits.pin, Origin.PIN, "pin", "pinned by a person", case.now_s + DAY_S)
    if wanted is None:
        return None
    bounded = bound_target(wanted.parallelism, case.observed, case.limits)
    return Intention(bounded, wanted.origin, wanted.step_id, wanted.reason, wanted.valid_until_s, wanted.settle_s)


def _check_job(case: Case) -> Action | None:
    observed, history = case.observed, case.history
    if observed.problem:
        return Action(Verb.REFUSE, observed.problem, observed.problem_detail)
    if observed.job_id is None:
        return Action(Verb.REFUSE, "unknown_job", "the cluster has no such job")
    if history.job_id != observed.job_id:
        was = f"was {history.job_id}, is {observed.job_id}" if history.job_id else f"is {observed.job_id}"
        return Action(Verb.WAIT, "new_job_id", f"the job {was}; its state is taken over as it is")
    if observed.requested is None:
        return Action(Verb.REFUSE, "no_requirements", "without the adaptive scheduler nothing can be sent")
    return None


def _follow_request(case: Case) -> Action | None:
    """Follow the request in flight to its end: nothing else is judged before."""
    request, observed = case.history.in_flight, case.observed
    if request is None:
        return None
    asked = dict(observed.requested or {})
    has_arrived = asked == dict(request.target)
    if has_arrived and _runs_as(observed.running, request.target):
        return Action(Verb.CONFIRM, "runs_as_requested", "", request)
    if not has_arrived and asked != dict(request.before):
        return _notice_late_request(case) or Action(
            Verb.REFUSE, "foreign_change", "somebody else changed the job while a request was in flight"
        )
    if case.now_s < request.deadline_s:
        return Action(Verb.WAIT, "in_flight", "a request is in flight")
    return _withdraw(case, request) if has_arrived else _end_lost(request)


def _runs_as(running: Parallelism, target: Parallelism) -> bool:
    """Whether all vertices that run do so as wanted; one that has finished no longer runs."""
    return bool(running) and all(target.get(vertex) == count for vertex, count in running.items())


def _end_lost(request: Request) -> Action:
    return Action(Verb.REFUSE, "not_received", f"the request of step {request.step_id} was lost")


def _withdraw(case: Case, request: Request) -> Action:
    """Take a bound back that Flink could not fill, so that it does not jump there later."""
    if request.is_rollback:
        return Action(Verb.REFUSE, "not_filled", "the earlier parallelism did not come back in time")
    if not _may_roll_back(case):
        return Action(Verb.REFUSE, "not_filled", "not filled in time, and nothing may be sent to withdraw it")
    # A vertex that has finished runs no more, and Flink wants a bound for it nevertheless.
    target = {**request.before, **case.observed.running}
    back = _request(case, f"{request.step_id}-withdrawn", target, request.settle_s, is_rollback=True)
    return Action(Verb.ROLL_BACK, "not_filled", "Flink did not fill the request in time: its bound is withdrawn", back)


def _notice_foreign_change(case: Case) -> Action | None:
    asked, history = dict(case.observed.requested or {}), case.history
    if history.known_requested is not None and asked == dict(history.known_requested):
        return None
    hold_h = case.limits.foreign_change_hold_s / HOUR_S
    detail = f"somebody else changed the job: it is left alone for {hold_h:g} h"
    return _notice_late_request(case) or Action(Verb.REFUSE, "foreign_change", detail)


def _notice_late_request(case: Case) -> Action | None:
    asked = dict(case.observed.requested or {})
    if not any(asked == dict(late) for late in case.history.late_targets):
        return None
    return Action(Verb.WAIT, "late_request", "a request that was given up has arrived; the job is judged afresh")


def _may_roll_back(case: Case) -> bool:
    """Whether a request that takes an own one back may be sent; it needs no further approval, and no free pace."""
    limits = case.limits
    allowed = limits.mode in {Mode.AUTO, Mode.APPROVE} and not limits.is_held and not limits.in_blackout
    return allowed and not case.observed.other_autoscaler


def _check_permission(case: Case) -> Action | None:
    if case.limits.mode is Mode.OFF:
        return Action(Verb.WAIT, "mode_off", "the mode is off")
    if case.limits.is_held:
        return Action(Verb.REFUSE, "on_hold", "a person has put the job on hold")
    if case.observed.other_autoscaler:
        return Action(Verb.REFUSE, "other_autoscaler", f"{case.observed.other_autoscaler} rescales the job as well")
    if case.now_s < case.history.held_until_s:
        left_min = (case.history.held_until_s - case.now_s) / 60
        return Action(Verb.REFUSE, "held", f"{case.history.held_because}; held for {left_min:.0f} more minutes")
    return None


def _judge_outcome(case: Case) -> Action | None:
    """Return the job to its last good parallelism, once, where its last rescale made it worse."""
    judged, good = case.history.to_judge, case.history.last_good
    if judged is None or good is None or not case.outcome.is_worse or judged.is_rollback:
        return None
    if not _may_roll_back(case):
        return Action(Verb.REFUSE, "worse_than_before", f"{case.outcome.detail}; no request is allowed now")
    target = bound_target({**(case.observed.requested or {}), **good}, case.observed, case.limits)
    if target == dict(case.observed.requested or {}):
        return None
    back = _request(case, f"{judged.step_id}-rollback", target, judged.settle_s, is_rollback=True)
    return Action(Verb.ROLL_BACK, "worse_than_before", case.outcome.detail, back)


def _check_state(case: Case) -> Action | None:
    observed = case.observed
    if observed.running:
        return None
    wanted = case.desired
    is_reactive = wanted is not None and wanted.origin is Origin.REACTIVE
    slots = 0 if wanted is None else observed.slots_of(wanted.parallelism)
    if is_reactive and observed.is_restarting and slots > observed.slots_of(observed.requested or {}):
        return None  # it comes back with what it is asked for meanwhile, without another stop
    return Action(Verb.WAIT, "not_running", f"the job is {observed.state}, or not all of its vertices run")


def _check_intention(case: Case) -> Action | None:
    wanted = desired_parallelism(case)
    if wanted is None or wanted.parallelism == dict(case.observed.requested or {}):
        return Action(Verb.WAIT, "as_desired", "nothing to change")
    if case.now_s > wanted.valid_until_s:
        return Action(Verb.REFUSE, "expired", "the step is past its validity")
    different = sorted(set(wanted.parallelism) ^ set(case.observed.requested or {}))
    if different:
        return Action(Verb.REFUSE, "unknown_operator", f"the job's vertices are not those of the step: {different}")
    if any(wanted.parallelism == dict(b.parallelism) and case.now_s < b.until_s for b in case.history.blocked):
        return Action(Verb.REFUSE, "blocked_target", "this parallelism did harm lately")
    return None


def _check_slots(case: Case) -> Action | None:
    wanted = desired_parallelism(case)
    if wanted is None:
        return None
    observed, limits = case.observed, case.limits
    slots = observed.slots_of(wanted.parallelism)
    added = slots - observed.slots_of(observed.running or observed.requested or {})
    if slots > limits.slots_max:
        return Action(Verb.REFUSE, "exceeds_slots", f"{slots} slots wanted, at most {limits.slots_max} allowed")
    if added > 0 and not observed.is_elastic and observed.free_slots is not None and added > observed.free_slots:
        return Action(Verb.REFUSE, "no_free_slots", f"{added} more slots wanted, {observed.free_slots} are free")
    if added < 0 and not limits.allows_falls:
        return Action(Verb.REFUSE, "falls_off", "scale-downs are switched off")
    if added < 0 and not observed.is_elastic and observed.free_slots is None:
        return Action(Verb.REFUSE, "free_slots_unknown", "nobody knows whether slots given back could be had again")
    return None


def _check_pace(case: Case) -> Action | None:
    history, limits, now_s = case.history, case.limits, case.now_s
    if limits.in_blackout:
        return Action(Verb.WAIT, "blackout", "a blackout window is on")
    if history.last_change_at_s is not None and now_s - history.last_change_at_s < limits.cooldown_s:
        return Action(Verb.WAIT, "cooldown", f"the last change was {now_s - history.last_change_at_s:.0f} s ago")
    for most, span_s, name in ((limits.rescales_per_hour, HOUR_S, "hour"), (limits.rescales_per_day, DAY_S, "day")):
        if sum(now_s - at_s < span_s for at_s in history.request_times_s) >= most:
            return Action(Verb.WAIT, f"rescales_per_{name}", f"{most:g} requests within a {name} are the limit")
    return None


def _check_approval(case: Case) -> Action | None:
    wanted = desired_parallelism(case)
    if case.limits.mode is not Mode.APPROVE or wanted is None or wanted.step_id in case.history.approved_steps:
        return None
    return Action(Verb.WAIT, "needs_approval", f"step {wanted.step_id} waits for a person's yes")


def _send(case: Case) -> Action:
    wanted = desired_parallelism(case)
    if wanted is None:  # the rules before have answered this
        return Action(Verb.WAIT, "as_desired", "nothing to change")
    request = _request(case, wanted.step_id, wanted.parallelism, wanted.settle_s)
    return Action(Verb.RESCALE, str(wanted.origin), wanted.reason, request, case.limits.mode is Mode.DRY_RUN)


def _request(case: Case, step_id: str, target: Parallelism, settle_s: float, *, is_rollback: bool = False) -> Request:
    return Request(
        step_id=step_id,
        job_id=case.observed.job_id or "",
        target=dict(target),
        before=dict(case.observed.requested or {}),
        running_before=dict(case.observed.running),
        sent_at_s=case.now_s,
        deadline_s=case.now_s + case.limits.confirm_timeout_s,
        settle_s=settle_s,
        is_rollback=is_rollback,
    )


_RULES: tuple[Callable[[Case], Action | None], ...] = (
    _check_job,
    _follow_request,
    _notice_foreign_change,
    _check_permission,
    _judge_outcome,
    _check_state,
    _check_intention,
    _check_slots,
    _check_pace,
    _check_approval,
)
