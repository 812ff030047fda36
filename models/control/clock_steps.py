"""Clocks that were set: times of a history that are possible, and a clock that cannot be right."""

from __future__ import annotations

import math
from dataclasses import replace

from include.utc import HOUR_S
from models.control.arrivals import LATE_S
from models.control.case import Action, Case, Verb
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.state import BlockedTarget, JobHistory, LateRequest, Request

CLOCK_DIFFERS = Reason.CLOCK_DIFFERS
DIFFERENCE_MAX_S = 3.0 * HOUR_S
"""A clock that differs by more from the cluster's is wrong, or the cluster's is: no time of a history can be judged."""


def check_clock(case: Case) -> Action | None:
    """Refuse everything, also what follows a request, while the clock is hours or days from the cluster's.

    By such a clock holds and cooldowns would be over, or their ends be moved.
    """
    reported_s = case.observed.told_at_s
    if reported_s is None or abs(case.now_s - reported_s) <= DIFFERENCE_MAX_S:
        return None
    hours = (case.now_s - reported_s) / HOUR_S
    detail = f"the controller's clock is {hours:+.1f} h from that of the cluster: one of them is wrong"
    return Action(Verb.REFUSE, CLOCK_DIFFERS, detail)


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
