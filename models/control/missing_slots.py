"""Requests that wait for slots, as for a new node: nobody's harm, and no step that went wrong."""

from __future__ import annotations

import math
from dataclasses import replace

from models.control.case import Action, Case, Verb
from models.control.checks import find_desired
from models.control.reasons import Reason
from models.control.state import OF_A_PERSON, ObservedJob, Request


def count_missing(request: Request, observed: ObservedJob) -> int:
    """Return the slots that a running job was asked for and that the cluster does not have; 0 where nobody knows."""
    if observed.free_slots is None or dict(observed.requested or {}) != dict(request.target):
        return 0
    return max(_slots_of(request, observed) - observed.slots - observed.free_slots, 0)


def note_slots(request: Request, observed: ObservedJob, now_s: float) -> Request:
    """Return a request with the time at which slots that were missing had come."""
    if not observed.running:
        return request
    if count_missing(request, observed):
        return replace(request, slots_came_at_s=math.inf)
    return replace(request, slots_came_at_s=now_s) if is_short_of_slots(request) else request


def is_short_of_slots(request: Request) -> bool:
    """Whether slots of a request were missing when it was last looked at: until they come the job runs on."""
    return request.slots_came_at_s == math.inf


def find_deadline_s(request: Request, now_s: float) -> float:
    """Return until when Flink may take for a request, epoch seconds: the time runs from when its slots had come."""
    if request.slots_came_at_s is None:
        return request.deadline_s
    return min(request.slots_came_at_s, now_s) + request.deadline_s - request.sent_at_s


def wait_for_slots(case: Case, request: Request, *, may_withdraw: bool) -> Action | None:
    """Wait for slots that are missing, after ``slots_wait_s`` as long as they are wanted; None: it is to be withdrawn.

    Flink has the request, which is in flight; ``may_withdraw`` says whether something may be sent to withdraw it.
    """
    missing, slots = count_missing(request, case.observed), _slots_of(request, case.observed)
    until_s = max(request.sent_at_s + case.limits.slots_wait_s, request.deadline_s)
    unasked = replace(case, observed=replace(case.observed, requested=request.before))
    desired = find_desired(unasked)
    is_demanded = desired is not None and desired.origin in OF_A_PERSON and desired.parallelism != dict(request.target)
    is_wanted = desired is not None and case.observed.slots_of(desired.parallelism) >= slots
    if case.now_s < until_s:
        waits, remains = not (is_demanded and may_withdraw), f"for at most {until_s - case.now_s:.0f} s more"
    else:
        waits, remains = is_wanted and may_withdraw and not is_demanded, "as long as they are wanted"
    since = f"{(case.now_s - request.sent_at_s) / 60:.0f} min after the request"
    detail = f"{slots - missing} of {slots} slots have come {since}; it waits {remains}"
    return Action(Verb.WAIT, Reason.SLOTS_MISSING, detail) if waits else None


def _slots_of(request: Request, observed: ObservedJob) -> int:
    """Return the slots that a request takes; vertices that have finished take none."""
    return observed.slots_of({vertex: count for vertex, count in request.target.items() if vertex in observed.running})
