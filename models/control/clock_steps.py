"""Times of a history after the clock was set back: none lies further ahead than it could have been put."""

from __future__ import annotations

from dataclasses import replace

from models.control.arrivals import LATE_S
from models.control.limits import Limits
from models.control.state import BlockedTarget, JobHistory, LateRequest, Request


def bound_times(history: JobHistory, now_s: float, limits: Limits) -> JobHistory:
    """Return the history with times that are possible now, so that nothing waits for a time that a wrong clock gave."""
    until_s = now_s + limits.foreign_change_hold_s
    return replace(
        history,
        in_flight=_bound_request(history.in_flight, now_s, limits),
        request_times_s=tuple(min(at_s, now_s) for at_s in history.request_times_s),
        last_change_at_s=_at_most(history.last_change_at_s, now_s),
        confirmed_at_s=_at_most(history.confirmed_at_s, now_s),
        blocked=tuple(
            BlockedTarget(one.parallelism, min(one.until_s, now_s + limits.block_s)) for one in history.blocked
        ),
        held_until_s=min(history.held_until_s, until_s),
        late_requests=tuple(LateRequest(one.target, min(one.until_s, now_s + LATE_S)) for one in history.late_requests),
    )


def _bound_request(request: Request | None, now_s: float, limits: Limits) -> Request | None:
    if request is None or request.sent_at_s <= now_s:
        return request
    arrived_at_s = _at_most(request.arrived_at_s, now_s)
    deadline_s = now_s + limits.confirm_timeout_s
    return replace(request, sent_at_s=now_s, deadline_s=deadline_s, arrived_at_s=arrived_at_s)


def _at_most(time_s: float | None, now_s: float) -> float | None:
    return None if time_s is None else min(time_s, now_s)
