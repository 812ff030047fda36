"""What is asked of a cluster before a request is decided on, and again before it leaves; what is asked after one.

Decisions of which nothing is sent ask nothing, so that a tick costs no more than observing the jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from controller.actuators.actuator import Actuator, Observation, RequestUnknownError
from models.control.case import Action, Case, Verb
from models.control.readiness import Readiness
from models.control.reasons import Reason
from models.control.reconcile import reconcile
from models.control.requests import is_waited_with
from models.control.state import JobHistory, Mode, ObservedJob, Request

log = logging.getLogger(__name__)

_AFTER_S = 300.0  # a request that has not begun is given a checkpoint at each tick for so long


def needs_readiness(action: Action) -> bool:
    """Whether a decision restarts a job, or would if it were no dry run; to take back what was not filled does not."""
    begins_nothing = action.reason in {Reason.NOT_FILLED, Reason.SLOTS_MISSING}
    return action.verb is Verb.RESCALE or (action.verb is Verb.ROLL_BACK and not begins_nothing)


def inspect(inspector: Actuator, job: str, job_id: str) -> Readiness | None:
    """Return what the cluster says of a job; one job's trouble keeps no other from its turn."""
    try:
        return inspector.inspect(job, job_id)
    except Exception as error:
        log.exception("%s is not asked", job)
        return Readiness(unknown=type(error).__name__, autoscaler_unknown=type(error).__name__)


def observe_followed(
    actuator: Actuator, job: str, history: JobHistory, known: Observation | None = None
) -> ObservedJob:
    """Return what the cluster says of a job, with its failures where its request is followed or judged.

    The job itself is looked at last: whatever has changed before that look counts. ``known`` is what was observed of it
    just before, or why nothing was; None to ask.

    Raises:
        RequestUnknownError: the cluster does not reply, or did not.
    """
    if isinstance(known, RequestUnknownError):
        raise known
    request = history.in_flight or history.to_judge
    if request is None or request.is_rollback or history.job_id is None:
        return actuator.observe(job) if known is None else known
    failures = actuator.read_failures(job, history.job_id)
    observed = actuator.observe(job) if known is None else known
    return replace(observed, failures=failures) if observed.job_id == history.job_id else observed


def decide_with_readiness(
    inspector: Actuator, job: str, case: Case, is_news: Callable[[Action], bool]
) -> tuple[Case, Action]:
    """Return the decision on a case, and what it was made from: where something is to be sent, Flink is asked first.

    ``is_news``: whether a dry run has not been decided just before; it is asked for once.
    """
    action = reconcile(case)
    is_asked = needs_readiness(action) and not (action.is_dry_run and not is_news(action))
    is_asked = is_asked or action.verb is Verb.CONFIRM  # a rescale ends savepoints
    if not (is_asked or (action.reason == Reason.IN_FLIGHT and is_waited_with(case))):
        return case, action
    ready = inspect(inspector, job, case.observed.job_id or "")
    asked = replace(case, observed=replace(case.observed, readiness=ready))
    return asked, reconcile(asked)


def wants_checkpoint(case: Case, action: Action) -> bool:
    """Whether a checkpoint is to be asked for: one before the request, or the one that Flink still waits for."""
    limits, ready, request = case.limits, case.observed.readiness, case.history.in_flight
    if not limits.guards.triggers_checkpoint:
        return False
    if action.reason == Reason.CHECKPOINT_FIRST:
        return ready is not None and ready.asked_ago_s is None
    allowed = limits.mode in {Mode.AUTO, Mode.APPROVE} and not (limits.is_held or limits.in_blackout)
    return action.reason == Reason.IN_FLIGHT and request is not None and allowed and _still_waits(case, request)


def ask_after_request(inspector: Actuator, job: str, case: Case, request: Request) -> None:
    """Ask for the checkpoint for which Flink waits with the rescale that was just asked for."""
    if not (request.forced_at_s is not None and case.limits.guards.triggers_checkpoint):
        return
    try:
        inspector.trigger_checkpoint(job, request.job_id)
    except Exception:  # the request has left: nothing about a checkpoint may change what is known of it
        log.exception("%s: no checkpoint was asked for", job)


def _still_waits(case: Case, request: Request) -> bool:
    """Whether a request has arrived and Flink has not begun: a checkpoint before it had its slots was of no use."""
    observed = case.observed
    has_arrived = dict(observed.requested or {}) == dict(request.target)
    is_waiting = has_arrived and bool(observed.running) and request.forced_at_s is not None
    return is_waiting and case.now_s - (request.slots_came_at_s or request.sent_at_s) <= _AFTER_S
