"""The rules about requests: the one in flight, those that come back, and what somebody else has asked for."""

from __future__ import annotations

from include.utc import HOUR_S
from models.control.arrivals import find_late, has_arrived, may_be_there, name_origin
from models.control.bounds import allow_any_step, bound_target, keep_as_asked
from models.control.case import Action, Case, Verb, form_request
from models.control.checkpoints import check_restart
from models.control.failing_rescale import SPARES_SAVEPOINT, take_back
from models.control.lower_bounds import is_lower_changed
from models.control.missing_slots import count_missing, find_deadline_s, wait_for_slots
from models.control.partial_rise import fit_back
from models.control.readiness import Checkpoints
from models.control.reasons import Reason
from models.control.request_states import describe_states, measure_states, name_state
from models.control.state import Mode, Parallelism, Request
from models.control.undo import form_undo
from models.scheduling.figures import format_count

_BEFORE_FORCED_S = 120.0  # two ticks


def take_back_failing(case: Case) -> Action | None:
    """Take a request back under which the job fails, whether it was confirmed or not."""
    return take_back(case) if _may_roll_back(case) else None


def follow_request(case: Case) -> Action | None:
    """Follow the request in flight to its end: nothing else is judged before."""
    request, observed = case.history.in_flight, case.observed
    if request is None:
        return None
    asked = dict(observed.requested or {})
    is_there = asked == dict(request.target) and may_be_there(request, case.now_s)
    # What Flink has had once does not go away by itself: the bounds of before are somebody's who has set them again.
    is_changed = not is_there and (asked != dict(request.before) or has_arrived(request, observed))
    if is_changed or is_lower_changed(case.history, observed):
        is_back = asked == dict(request.before) and not is_lower_changed(case.history, observed)
        what = "changed the job while a request was in flight"
        reported = f"{name_origin(case)} {'took a request back that had arrived' if is_back else what}"
        return _notice_late_request(case) or Action(Verb.REFUSE, Reason.FOREIGN_CHANGE, reported)
    if is_there and observed.runs_at(request.target):
        took = describe_states(measure_states(case, request)) + _name_broken_savepoint(case, request)
        return Action(Verb.CONFIRM, Reason.RUNS_AS_REQUESTED, took, request)
    # What Flink waits for comes after it was asked: a request that did not arrive is given up sooner.
    arrives_until_s = min(request.deadline_s, request.sent_at_s + case.limits.confirm_timeout_s)
    waits = _wait_in_flink(case, request) if is_there else None
    if waits is not None:
        return waits
    if case.now_s < (find_deadline_s(request, case.now_s) if is_there else arrives_until_s):
        return Action(Verb.WAIT, Reason.IN_FLIGHT, f"a request is in flight{_describe_wait(case, request)}")
    lost = Action(Verb.REFUSE, Reason.NOT_RECEIVED, f"the request of step {request.step_id} was lost")
    return _withdraw(case, request) if is_there else lost


def _wait_in_flink(case: Case, request: Request) -> Action | None:
    """Return what is done with a request that Flink has, and would end a savepoint for or lacks slots for."""
    spared = _spare_savepoint(case, request)
    if spared is not None or not count_missing(request, case.observed):
        return spared
    return wait_for_slots(case, request, may_withdraw=_may_roll_back(case)) or _withdraw(case, request)


def is_waited_with(case: Case) -> bool:
    """Whether Flink, which waits for a checkpoint, has not begun with the request in flight."""
    request, observed = case.history.in_flight, case.observed
    if request is None or request.is_rollback or request.forced_at_s is None:
        return False
    has_arrived = dict(observed.requested or {}) == dict(request.target)
    return has_arrived and bool(observed.running) and dict(observed.running) == dict(request.running_before)


def _begins_soon(case: Case, request: Request, told: Checkpoints) -> bool:
    """Whether Flink may begin in the midst of a savepoint: without a checkpoint, or with one that began before it."""
    is_forced = request.forced_at_s is not None and case.now_s >= request.forced_at_s - _BEFORE_FORCED_S
    return is_forced or told.in_progress > 0


def _spare_savepoint(case: Case, request: Request) -> Action | None:
    """Take a request back for which Flink would end a savepoint that somebody has begun since."""
    ready = case.observed.readiness
    reported = None if ready is None else ready.checkpoints
    if reported is None or not reported.savepoints or not is_waited_with(case) or not _may_roll_back(case):
        return None
    if not _begins_soon(case, request, reported):
        return None
    target = {**case.observed.running, **request.before}
    back = form_request(case, f"{request.step_id}-postponed", target, request.settle_s, is_rollback=True)
    detail = "Flink would soon end the savepoint that was begun since: the request waits for its end"
    return Action(Verb.ROLL_BACK, SPARES_SAVEPOINT, detail, back)


def _name_broken_savepoint(case: Case, request: Request) -> str:
    """Return what to do about a savepoint that failed between a request and its end, as Flink ends them; or nothing."""
    ready, ahead_s = case.observed.readiness, case.history.ahead_s
    failed_at_s = None if ready is None or ready.checkpoints is None else ready.checkpoints.savepoint_failed_at_s
    if failed_at_s is None or ahead_s is None or failed_at_s + ahead_s < request.sent_at_s:
        return ""
    return f"; a savepoint failed {failed_at_s + ahead_s - request.sent_at_s:.0f} s after the request: ask for it again"


def _describe_wait(case: Case, request: Request) -> str:
    state = f": {name_state(request, case.observed)}"
    if not request.wait_detail:
        return state
    remaining_s = find_deadline_s(request, case.now_s) - case.now_s
    return f"{state}, for at most {remaining_s:.0f} s more; Flink may wait: {request.wait_detail}"


def _withdraw(case: Case, request: Request) -> Action:
    """Take a bound back that Flink could not fill, so that it does not jump there later."""
    if request.is_rollback:
        missing = count_missing(request, case.observed)
        lacks = f": it lacks {format_count(missing, 'slot')}, and is no longer waited for" if missing else ""
        return Action(Verb.REFUSE, Reason.NOT_FILLED, f"the earlier parallelism did not come back in time{lacks}")
    if not _may_roll_back(case):
        return Action(Verb.REFUSE, Reason.NOT_FILLED, "not filled in time, and nothing may be sent to withdraw it")
    return _take_back(case, request)


def _take_back(case: Case, request: Request) -> Action:
    target = keep_as_asked(_what_was_filled(request, case.observed.running), case.observed, case.limits)
    back = form_request(case, f"{request.step_id}-withdrawn", target, request.settle_s, is_rollback=True)
    why, reason = "Flink did not fill the request in time", Reason.NOT_FILLED
    missing = count_missing(request, case.observed)
    if missing:
        reason = Reason.SLOTS_MISSING
        why = f"the request lacks {format_count(missing, 'slot')}, and it is no longer wanted"
    if case.observed.is_restarting:
        why = f"the job is {case.observed.state} since the request and does not come to run: see its exceptions"
    return Action(Verb.ROLL_BACK, reason, f"{why}: its bound is withdrawn", back)


def _what_was_filled(request: Request, running: Parallelism) -> dict[str, int]:
    """Return how far Flink has come from the bounds before a request to its target; a vertex beyond both stays.

    A bound of before that was not filled either is not lowered to what runs: it was somebody's.
    """
    filled = dict(request.before)
    for vertex, count in running.items():
        ends = (request.before.get(vertex, count), request.target.get(vertex, count))
        filled[vertex] = max(min(count, max(ends)), min(ends))
    return filled


def withdraw_unfilled(case: Case) -> Action | None:
    """Withdraw a bound that was left in Flink because nothing might be sent then."""
    unfilled, observed = case.history.unfilled, case.observed
    if unfilled is None or not observed.running or not _may_roll_back(case):
        return None
    is_there = dict(observed.requested or {}) == dict(unfilled.target)
    return _take_back(case, unfilled) if is_there and not observed.runs_at(unfilled.target) else None


def notice_foreign_change(case: Case) -> Action | None:
    """Leave a job alone that somebody else has changed."""
    asked, history = dict(case.observed.requested or {}), case.history
    is_lower_known = not is_lower_changed(history, case.observed)
    if history.known_requested is not None and asked == dict(history.known_requested) and is_lower_known:
        return None
    hold_h = case.limits.foreign_change_hold_s / HOUR_S
    detail = f"somebody else changed the job: it is left alone for {hold_h:g} h"
    return _notice_late_request(case) or Action(Verb.REFUSE, Reason.FOREIGN_CHANGE, detail)


def _notice_late_request(case: Case) -> Action | None:
    arrived = find_late(case.history, case.observed.requested or {}, case.now_s)
    if arrived is None or is_lower_changed(case.history, case.observed):
        return None
    return Action(Verb.WAIT, Reason.LATE_REQUEST, "a request that was given up has arrived; the job is judged afresh")


def _may_roll_back(case: Case) -> bool:
    """Whether a request that takes an own one back may be sent; it needs no further approval, and no free pace."""
    limits = case.limits
    allowed = limits.mode in {Mode.AUTO, Mode.APPROVE} and not limits.is_held and not limits.in_blackout
    observed = case.observed
    return allowed and not (observed.other_autoscaler or observed.autoscaler_unknown or observed.obstacle)


def check_outcome(case: Case) -> Action | None:
    """Return the job to its last good parallelism, once, where its last rescale made it worse.

    A rise of which more is wanted by now stays, unless the job fails again and again since.
    """
    judged, good = case.history.to_judge, case.history.last_good
    if judged is None or good is None or not case.outcome.is_worse or judged.is_rollback:
        return None
    if form_undo(case.limits.undo, case.history, case.observed, case.now_s) is not None:
        return None  # a person has decided already, and on the same
    if not _may_roll_back(case):
        return Action(Verb.REFUSE, Reason.WORSE_THAN_BEFORE, f"{case.outcome.detail}; no request is allowed now")
    asked = dict(case.observed.requested or {})
    pinned = case.limits.pin_of(asked)  # what a person demands stays
    back_to = bound_target({**asked, **good, **pinned}, case.observed, allow_any_step(case.limits))
    target = fit_back(back_to, case)
    is_wanted = not case.outcome.is_failing and _takes_wanted(case, target)
    if is_wanted or target == asked:
        return None if is_wanted or back_to == asked else _describe_no_way_back(case, back_to)
    ready = case.observed.readiness
    refused = None if ready is None else check_restart(ready)
    if refused is not None:
        return refused
    back = form_request(case, f"{judged.step_id}-rollback", target, judged.settle_s, is_rollback=True)
    return Action(Verb.ROLL_BACK, Reason.WORSE_THAN_BEFORE, case.outcome.detail, back)


def _takes_wanted(case: Case, target: Parallelism) -> bool:
    """Whether a way back lowers a vertex of which more is wanted now than it is asked for."""
    desired, asked = {} if case.desired is None else case.desired.parallelism, case.observed.requested or {}
    return any(count < asked.get(vertex, count) < desired.get(vertex, 0) for vertex, count in target.items())


def _describe_no_way_back(case: Case, target: Parallelism) -> Action:
    missing = case.observed.slots_of(target) - case.observed.slots
    detail = f"{case.outcome.detail}; {missing} more slots are needed to go back, and are not to be had"
    return Action(Verb.REFUSE, Reason.NO_FREE_SLOTS, detail)
