"""Whether a request is known to have reached Flink, and those that may still do so after they were given up.

Equal numbers do not make a change the controller's own: a person may set what was in force before, or what was once
tried. A change is its own where it was sent, and Flink has not been seen to have it already.
"""

from __future__ import annotations

from dataclasses import replace

from models.control.case import Case
from models.control.lower_bounds import is_lower_changed
from models.control.state import JobHistory, LateRequest, ObservedJob, Parallelism, Request

LATE_S = 960.0
"""How long after it was sent a request may still arrive, s: a connection without a reply is given up by then.

Linux repeats what is not acknowledged for at least 924.6 s by default (``tcp_retries2`` = 15,
https://docs.kernel.org/networking/ip-sysctl.html); proxies wait for less.
"""


def has_arrived(request: Request, observed: ObservedJob) -> bool:
    """Whether Flink has had a request, by what was seen of the job so far; a reply alone may be a proxy's."""
    return request.arrived_at_s is not None or _shows(request, observed)


def may_be_there(request: Request, now_s: float) -> bool:
    """Whether bounds that a request asked for may be its own: it has arrived, or it can only have done so lately.

    Those that are first seen later, after the controller was down, say, may be somebody else's.
    """
    return request.arrived_at_s is not None or now_s < request.sent_at_s + LATE_S


def name_origin(case: Case) -> str:
    """Return who changed a job that is not as it was asked for: nobody knows where it may be a request of our own."""
    request, asked = case.history.in_flight, dict(case.observed.requested or {})
    may_be_own = request is not None and request.arrived_at_s is None
    is_of_request = request is not None and asked in (dict(request.before), dict(request.target))
    is_lower = is_lower_changed(case.history, case.observed)
    return "nobody knows who" if may_be_own and is_of_request and not is_lower else "somebody else"


def note_arrival(request: Request, observed: ObservedJob, now_s: float) -> Request:
    """Return a request with the time at which it was first known to have arrived."""
    if request.arrived_at_s is not None or not _shows(request, observed):
        return request
    return replace(request, arrived_at_s=now_s)


def _shows(request: Request, observed: ObservedJob) -> bool:
    """Whether an observation shows that a request has arrived, if only by what it left behind."""
    target, before, ran = dict(request.target), request.before, dict(request.running_before)
    declared = observed.declared or {}
    if dict(observed.requested or {}) == target or all(declared.get(one) == target[one] for one in target):
        return True
    has_grown = any(
        count > max(before.get(vertex, count), ran.get(vertex, count)) for vertex, count in observed.running.items()
    )
    return (
        has_grown
        or _has_started_anew(request, observed)
        or (observed.runs_at(target) and dict(observed.running) != ran)
    )


def _has_started_anew(request: Request, observed: ObservedJob) -> bool:
    """Whether the job has come to run again since a request: a rescale does that, there and back as well.

    A failure does it too; a request of which nobody knows then counts as one that has arrived, and is not repeated.
    """
    before_s, now_s = request.running_since_s, observed.running_since_s
    return before_s is not None and now_s is not None and bool(observed.running) and before_s != now_s


def remember_late(history: JobHistory, request: Request, observed: ObservedJob) -> JobHistory:
    """Return the history after a request was given up: one that is not known to have arrived may do so late."""
    if has_arrived(request, observed):
        return history
    late = LateRequest(dict(request.target), request.sent_at_s + LATE_S)
    return replace(history, late_requests=(*history.late_requests, late))


def find_late(history: JobHistory, asked: Parallelism, now_s: float) -> LateRequest | None:
    """Return the given-up request that may be behind ``asked``; None where it is somebody else's."""
    return next((one for one in history.late_requests if dict(one.target) == dict(asked) and now_s < one.until_s), None)


def forget_late(history: JobHistory, in_force: Parallelism | None, now_s: float) -> JobHistory:
    """Return the history without requests that are too old to arrive, and without those for what is in force.

    What was in force once, whichever request brought it there, and comes back after another one was sent, may be
    somebody's who has taken that one back.
    """
    remaining = tuple(
        one for one in history.late_requests if now_s < one.until_s and one.target != dict(in_force or {})
    )
    return replace(history, late_requests=remaining)
