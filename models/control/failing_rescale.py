"""The rule about a rescale that makes the job fail: it is taken back at once, not after its time has passed."""

from __future__ import annotations

import math
from collections import defaultdict

from models.control.bounds import keep_as_asked
from models.control.case import Action, Case, Verb, form_request
from models.control.partial_rise import fit_back
from models.control.readiness import Failure
from models.control.reasons import Reason
from models.control.state import BlockedTarget, Request

FAILS, SPARES_SAVEPOINT = Reason.JOB_FAILS, Reason.SAVEPOINT_IN_PROGRESS
HARMLESS = frozenset({SPARES_SAVEPOINT, Reason.UNDO, Reason.SLOTS_MISSING})
"""Why a request is taken back that did nothing wrong: its target may be tried again at once."""
_TWICE = 2
_ONE_LOSS_S = 300.0
"""Failures for slots that were lost are one for so long: Flink deploys to a TaskManager that is gone, again and again,
until its heartbeat times out (50 s unless set), and a new one takes a minute or two."""


def find_failure(case: Case) -> tuple[Request, Failure] | None:
    """Return the request that makes the job fail, and how: in one way, at least twice, that it did not know before."""
    history, asked = case.history, dict(case.observed.requested or {})
    request = history.in_flight or history.to_judge
    if request is None or request.is_rollback or asked != dict(request.target):
        return None
    known, since_s = set(request.failures_before or ()), _since_s(request)
    later: defaultdict[str, list[Failure]] = defaultdict(list)
    for one in case.observed.failures or ():
        if one.at_s > since_s:
            later[one.kind].append(one)
        else:
            known.add(one.kind)
    known -= {block.failure for block in history.blocked}  # a rescale was their cause, and may be again
    new: list[list[Failure]] = [one for kind, one in later.items() if kind not in known and _count(one) >= _TWICE]
    if not new:
        return None
    most = max(new, key=len)
    return request, max(most, key=lambda one: one.at_s)


def _count(failures: list[Failure]) -> int:
    """Return how often a job failed in one way; while the slots that one loss has taken are away, that was once."""
    count, until_s = 0, -math.inf
    for one in sorted(failures, key=lambda failure: failure.at_s):
        if not one.lacks_slots or one.at_s >= until_s:
            count, until_s = count + 1, one.at_s + _ONE_LOSS_S
    return count


def _since_s(request: Request) -> float:
    """Return when the last failure before a request was, by Flink's clock as far as that is known."""
    if request.failed_until_s is not None:
        return request.failed_until_s
    return request.sent_at_s if request.failures_before is None else -math.inf


def take_back(case: Case) -> Action | None:
    """Return the action that takes a request back under which the job fails; the caller knows that it may be sent."""
    result = find_failure(case)
    if result is None:
        return None
    request, failure = result
    asked = dict(case.observed.requested or {})
    before = {vertex: request.before.get(vertex, count) for vertex, count in asked.items()}
    target = keep_as_asked(before, case.observed, case.limits)
    if case.observed.free_slots is not None:  # where nobody knows, worse than failing it cannot become
        target = fit_back(target, case)
    if target == asked:
        return None
    back = form_request(case, f"{request.step_id}-failed", target, request.settle_s, is_rollback=True)
    return Action(Verb.ROLL_BACK, FAILS, f"the job fails since the request, {failure.cause}: it is taken back", back)


def form_block(case: Case, request: Request, reason: Reason) -> BlockedTarget:
    """Return the block of a target that a request takes back.

    A target under which the job failed is tried again when a person says so; where TaskManagers or slots were lost, or
    the rescale did other harm, after a time; one that waits for the end of a savepoint or for slots at once, and so
    may one that a person has taken back, when the job is no longer on hold.
    """
    until_s = case.now_s if reason in HARMLESS else case.now_s + case.limits.block_s
    result = find_failure(case) if reason == FAILS else None
    if result is None:
        return BlockedTarget(dict(request.before), until_s)
    failed, failure = result
    because = f"the job failed: {failure.cause}"
    if failure.lacks_slots:
        return BlockedTarget(dict(request.before), until_s, because=because, failure=failure.kind)
    block_id = f"{failed.step_id}-{case.now_s:.0f}"
    return BlockedTarget(dict(request.before), math.inf, block_id, because, failure.kind)
