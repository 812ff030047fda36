"""How the controller's history of a job goes on after a decision; the log holds what is needed to make it again."""

from __future__ import annotations

import math
from dataclasses import replace

from include.utc import DAY_S
from models.control.approval import use_approvals
from models.control.arrivals import forget_late, has_arrived, name_origin, note_arrival, remember_late
from models.control.bad_steps import note_bad_step
from models.control.case import Action, Case, Verb
from models.control.clock_steps import bound_times
from models.control.failing_rescale import HARMLESS, form_block
from models.control.lateness import note_lateness
from models.control.missing_slots import count_missing, note_slots
from models.control.reasons import Reason
from models.control.request_states import add_times, measure_states, note_caught_up
from models.control.resubmission import find_lost
from models.control.state import BlockedTarget, JobHistory, ObservedJob, Request


def advance_history(case: Case, action: Action) -> JobHistory:
    """Return the history after a decision.

    For a decision that sends, this is the history from before the request leaves: it stands in the log by then, so a
    controller that is killed at any moment finds its request in flight.
    """
    history = end_unsent_request(case)
    if action.verb is Verb.CONFIRM and action.request is not None:
        return _confirm(history, case, action.request)
    if action.request is not None and not action.is_dry_run:
        return _send(history, case, action.request, action.reason)
    return _RECORDS.get(action.reason, lambda history, _: history)(history, case)


def end_refused_request(history: JobHistory, now_s: float, block_s: float) -> JobHistory:
    """Return the history after Flink has refused the request in flight; its target is not tried again for a time."""
    if history.in_flight is None:
        return history
    failed = history if history.in_flight.is_rollback else note_bad_step(history, now_s)
    block = BlockedTarget(dict(history.in_flight.target), now_s + block_s, because="Flink has refused it lately")
    return _block(replace(failed, in_flight=None), block, now_s)


def end_unsent_request(case: Case) -> JobHistory:
    """Return the history after a decision of which nothing was sent: what was known before, and the outcome."""
    history = note_lateness(bound_times(case.history, case.now_s, case.limits), case)
    history = note_caught_up(history, case)
    history = forget_late(history, case.observed.requested, case.now_s)
    if history.unfilled is not None and case.observed.runs_at(history.unfilled.target):
        history = replace(history, unfilled=None)  # it is filled after all
    return replace(history, to_judge=None) if case.outcome.is_worse is False else history


def note_seen(history: JobHistory, observed: ObservedJob, now_s: float) -> JobHistory:
    """Return the history after a job was observed while a request is in flight."""
    request = history.in_flight
    if request is None or observed.job_id != request.job_id:
        return history
    followed = replace(history, in_flight=note_slots(note_arrival(request, observed, now_s), observed, now_s))
    return forget_late(followed, observed.requested, now_s)


def _send(history: JobHistory, case: Case, request: Request, reason: Reason) -> JobHistory:
    times_s = (*(at_s for at_s in history.request_times_s if case.now_s - at_s < DAY_S), case.now_s)
    used = use_approvals(history, request, case.limits.approvals, case.now_s)
    after = replace(history, in_flight=request, request_times_s=times_s, to_judge=None, used_approvals=used)
    if not request.is_rollback:
        # The bounds in force, which may not have been filled: they are what there is to go back to. Of a job that does
        # not run they may be the harm of the request before; else they are good, or somebody else has set them.
        is_doubtful = not request.running_before and history.to_judge is not None
        return replace(after, last_good=history.last_good if is_doubtful else request.before, last_sent=request)
    if history.unfilled is None and reason not in HARMLESS:  # a step that was not filled is counted already
        after = note_bad_step(after, case.now_s)
    return _block(replace(after, unfilled=None), form_block(case, request, reason), case.now_s)


def _confirm(history: JobHistory, case: Case, request: Request) -> JobHistory:
    return replace(
        history,
        in_flight=None,
        known_requested=request.target,
        last_change_at_s=case.now_s,
        unfilled=None,
        to_judge=None if request.is_rollback else request,
        confirmed_at_s=case.now_s,
        lost=None,
        times_of_requests=add_times(history, measure_states(case, request)),
    )


def _take_over(history: JobHistory, case: Case) -> JobHistory:
    """Start again with a new job id or JobManager; the pace, and what a person has to lift, go by the job's name.

    A deployment that comes with another parallelism is a change that somebody else made.
    """
    is_same_id = history.job_id == case.observed.job_id
    begun = JobHistory(
        job_id=case.observed.job_id,
        known_requested=case.observed.requested,
        request_times_s=history.request_times_s,
        last_change_at_s=history.last_change_at_s,
        held_until_s=history.held_until_s,
        held_because=history.held_because,
        submitted_at_s=case.observed.submitted_at_s,
        blocked=tuple(one for one in history.blocked if is_same_id or math.isinf(one.until_s)),
        lost=find_lost(history, case.observed),
        bad_steps_s=history.bad_steps_s,
        known_lower=case.observed.lower_bounds,
        used_approvals=history.used_approvals,
        late_since_s=history.late_since_s,
        down_since_s=history.down_since_s,
        last_sent=history.last_sent if is_same_id else None,
        ahead_s=history.ahead_s,
        times_of_requests=history.times_of_requests,
    )
    if begun.lost is not None:
        return begun
    if history.job_id is None or _is_unchanged(history, case.observed):
        return begun
    return _hold_foreign(begun, case, "the job was deployed anew, with another parallelism")


def _is_unchanged(history: JobHistory, observed: ObservedJob) -> bool:
    """Whether a job came back with what was in force, or with what its resource was asked for.

    A request goes to a job id: one that has not arrived explains no number of the job that came after. Under the same
    id a new JobManager may have it, or have been lost before it was stored.
    """
    request, in_force = history.in_flight, history.known_requested
    if request is not None and history.job_id == observed.job_id:
        return dict(observed.requested or {}) in (dict(request.target), dict(request.before))
    if request is not None:
        in_force = request.target if has_arrived(request, _of_resource(observed)) else request.before
    return in_force is not None and dict(in_force) == dict(observed.requested or {})


def _of_resource(observed: ObservedJob) -> ObservedJob:
    """Return what the job's resource tells; what Flink tells is of another job than the one that a request was for."""
    return replace(observed, requested=None, running={})


def _accept_foreign_change(history: JobHistory, case: Case) -> JobHistory:
    return _hold_foreign(_accept_requested(history, case), case, f"{name_origin(case)} changed the job")


def _accept_requested(history: JobHistory, case: Case) -> JobHistory:
    """Take what Flink was asked for as it is; a request in flight has ended, and may still arrive."""
    given_up = history if history.in_flight is None else remember_late(history, history.in_flight, case.observed)
    return replace(
        given_up,
        in_flight=None,
        known_requested=case.observed.requested,
        known_lower=case.observed.lower_bounds,
        last_change_at_s=case.now_s,
        to_judge=None,
        unfilled=None,
        lost=None,
    )


def _accept_late_request(history: JobHistory, case: Case) -> JobHistory:
    """Take over what a given-up request has left; one that is in flight and has not arrived is still followed."""
    request = history.in_flight
    if request is None or has_arrived(request, case.observed) or case.now_s >= request.deadline_s:
        return _accept_requested(history, case)
    accepted = _accept_requested(replace(history, in_flight=None), case)
    return replace(accepted, in_flight=replace(request, before=dict(case.observed.requested or {})))


def _follow(history: JobHistory, case: Case) -> JobHistory:
    return note_seen(history, case.observed, case.now_s)


def _end_gone_request(history: JobHistory, case: Case) -> JobHistory:
    """End the request of a job that is gone when its time has passed."""
    request = history.in_flight
    if request is None or case.now_s < request.deadline_s:
        return history
    if request.arrived_at_s is not None:  # should the job come back under its id, this is what it was asked for
        return replace(history, in_flight=None, known_requested=request.target)
    return replace(remember_late(history, request, case.observed), in_flight=None)


def _end_lost_request(history: JobHistory, case: Case) -> JobHistory:
    if history.in_flight is None:
        return history
    given_up = remember_late(history, history.in_flight, case.observed)  # that it got lost is no fault of the step
    return replace(given_up, in_flight=None, known_requested=case.observed.requested)


def _end_unfilled_request(history: JobHistory, case: Case) -> JobHistory:
    request, ended = history.in_flight, _accept_requested(_note_failure(history, case), case)
    held = _hold_foreign(ended, case, "Flink did not fill a request")
    if request is None or not request.is_rollback:
        return replace(held, unfilled=request)
    return ended if count_missing(request, case.observed) else held  # slots that are gone are nobody's change


def _note_failure(history: JobHistory, case: Case) -> JobHistory:
    """Count a step that has failed; one that takes another back was counted when it was sent."""
    request = history.in_flight
    is_harmless = request is None or request.is_rollback or count_missing(request, case.observed)
    return history if is_harmless else note_bad_step(history, case.now_s)


def _hold_foreign(history: JobHistory, case: Case, because: str) -> JobHistory:
    until_s = case.now_s + case.limits.foreign_change_hold_s
    return replace(history, held_until_s=max(until_s, history.held_until_s), held_because=because)


def _block(history: JobHistory, block: BlockedTarget, now_s: float) -> JobHistory:
    in_force = tuple(blocked for blocked in history.blocked if now_s < blocked.until_s)
    return replace(history, blocked=(*in_force, block))


_RECORDS = {
    Reason.IN_FLIGHT: _follow,
    Reason.SLOTS_MISSING: _follow,
    Reason.UNKNOWN_JOB: _end_gone_request,
    Reason.NEW_JOB_ID: _take_over,
    Reason.FOREIGN_CHANGE: _accept_foreign_change,
    Reason.LATE_REQUEST: _accept_late_request,
    Reason.NOT_RECEIVED: _end_lost_request,
    Reason.NOT_FILLED: _end_unfilled_request,
}
