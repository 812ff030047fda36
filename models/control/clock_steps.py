"""Clocks that were set: times of a history move with the controller's, and what goes by a calendar waits for it."""

from __future__ import annotations

import math
from dataclasses import replace

from include.utc import HOUR_S
from models.control.arrivals import LATE_S
from models.control.case import Action, Case, Verb
from models.control.checks import find_desired
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.state import BlockedTarget, JobHistory, LateRequest, Origin, Request

DIFFERENCE_MAX_S = 3.0 * HOUR_S
"""A clock that differs by more from the cluster's is wrong, or the cluster's is: no hour of the day is known."""
STEP_MIN_S = 60.0
"""A change of the difference to the cluster's clock that is smaller may be the time of a reply."""
_OF_THE_CALENDAR = frozenset({Origin.PLAN, Origin.SCHEDULE})


def check_clock(case: Case) -> Action | None:
    """Refuse what goes by a calendar while the clock is hours or days from the cluster's; all else goes on."""
    reported_s, desired = case.observed.told_at_s, find_desired(case)
    if reported_s is None or desired is None or abs(case.now_s - reported_s) <= DIFFERENCE_MAX_S:
        return None
    if desired.origin not in _OF_THE_CALENDAR and (desired.origin is Origin.UNDO or not case.limits.has_blackouts):
        return None
    hours = (case.now_s - reported_s) / HOUR_S
    detail = f"the controller's clock is {hours:+.1f} h from that of the cluster: one of them is wrong"
    return Action(Verb.REFUSE, Reason.CLOCK_DIFFERS, detail)


def align_times(history: JobHistory, told_at_s: float | None, seen_at_s: float, limits: Limits) -> JobHistory:
    """Return a history as the controller's clock has it now, so that no step of a clock shortens a hold or a deadline.

    Times move with a clock that was set ahead of the cluster's. Where it was the cluster's that was set back, a wait
    begins again at most. ``told_at_s`` is the cluster's time, None where it tells none, ``seen_at_s`` the controller's
    when it told that, epoch seconds.
    """
    if told_at_s is None:
        return history
    ahead_s = seen_at_s - told_at_s
    step_s = 0.0 if history.ahead_s is None else ahead_s - history.ahead_s
    if history.ahead_s is not None and abs(step_s) < STEP_MIN_S:
        return history
    aligned = replace(_move(history, step_s) if step_s > 0 else history, ahead_s=ahead_s)
    return aligned if history.ahead_s is None else bound_times(aligned, seen_at_s, limits)


def _move(history: JobHistory, step_s: float) -> JobHistory:
    return replace(
        history,
        in_flight=_move_request(history.in_flight, step_s),
        to_judge=_move_request(history.to_judge, step_s),
        last_sent=_move_request(history.last_sent, step_s),
        unfilled=_move_request(history.unfilled, step_s),
        late_requests=tuple(replace(one, until_s=one.until_s + step_s) for one in history.late_requests),
        request_times_s=tuple(at_s + step_s for at_s in history.request_times_s),
        last_change_at_s=_later(history.last_change_at_s, step_s),
        confirmed_at_s=_later(history.confirmed_at_s, step_s),
        blocked=tuple(replace(one, until_s=one.until_s + step_s) for one in history.blocked),
        held_until_s=history.held_until_s + step_s,
        bad_steps_s=tuple(at_s + step_s for at_s in history.bad_steps_s),
        late_since_s=_later(history.late_since_s, step_s),
        down_since_s=_later(history.down_since_s, step_s),
    )


def _move_request(request: Request | None, step_s: float) -> Request | None:
    if request is None:
        return None
    return replace(
        request,
        sent_at_s=request.sent_at_s + step_s,
        deadline_s=request.deadline_s + step_s,
        forced_at_s=_later(request.forced_at_s, step_s),
        arrived_at_s=_later(request.arrived_at_s, step_s),
        slots_came_at_s=_later(request.slots_came_at_s, step_s),
    )


def _later(time_s: float | None, step_s: float) -> float | None:
    return None if time_s is None else time_s + step_s


def bound_times(history: JobHistory, now_s: float, limits: Limits) -> JobHistory:
    """Return the history with times that are possible now, so that nothing waits for a time that a wrong clock gave."""
    until_s = now_s + limits.foreign_change_hold_s
    return replace(
        history,
        in_flight=_bound_request(history.in_flight, now_s),
        request_times_s=tuple(min(at_s, now_s) for at_s in history.request_times_s),
        last_change_at_s=_at_most(history.last_change_at_s, now_s),
        confirmed_at_s=_at_most(history.confirmed_at_s, now_s),
        blocked=tuple(_bound_block(one, now_s, limits) for one in history.blocked),
        held_until_s=min(history.held_until_s, until_s),
        late_requests=tuple(LateRequest(one.target, min(one.until_s, now_s + LATE_S)) for one in history.late_requests),
    )


def _bound_request(request: Request | None, now_s: float) -> Request | None:
    if request is None or request.sent_at_s <= now_s:
        return request
    ahead_s, forced_at_s = request.sent_at_s - now_s, request.forced_at_s
    return replace(
        request,
        sent_at_s=now_s,
        deadline_s=max(request.deadline_s - ahead_s, now_s),
        forced_at_s=None if forced_at_s is None else forced_at_s - ahead_s,
        arrived_at_s=_at_most(request.arrived_at_s, now_s),
        slots_came_at_s=request.slots_came_at_s
        if request.slots_came_at_s == math.inf
        else _at_most(request.slots_came_at_s, now_s),
    )


def _bound_block(block: BlockedTarget, now_s: float, limits: Limits) -> BlockedTarget:
    """Return a block that ends in time; one that a person has to lift stays."""
    return block if math.isinf(block.until_s) else replace(block, until_s=min(block.until_s, now_s + limits.block_s))


def _at_most(time_s: float | None, now_s: float) -> float | None:
    return None if time_s is None else min(time_s, now_s)
