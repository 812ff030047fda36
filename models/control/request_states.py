"""How long the states of a request last: sent, accepted, waits for slots and a checkpoint, restores, catches up."""

from __future__ import annotations

from dataclasses import fields, replace

from models.control.case import Case
from models.control.request_times import RequestTimes
from models.control.state import JobHistory, ObservedJob, Request

_REMEMBERED = 16  # requests of a job
_NAMES = {
    "accepted_s": "accepted after",
    "slots_s": "its slots came after",
    "waited_s": "the job ran on for",
    "restored_s": "restored in",
    "caught_up_s": "caught up after",
}


def measure_states(case: Case, request: Request) -> RequestTimes:
    """Return the times of a request that now runs as asked; when the job stopped for it is told by Flink's clock."""
    now_s, arrived_s, slots_at_s = case.now_s, request.arrived_at_s, request.slots_came_at_s
    sent_s = min(request.sent_at_s, now_s)
    accepted_s = sent_s if arrived_s is None else min(max(arrived_s, sent_s), now_s)
    ready_s = accepted_s if slots_at_s is None else min(max(slots_at_s, accepted_s), now_s)
    times = RequestTimes(
        accepted_s=None if arrived_s is None else accepted_s - sent_s,
        slots_s=None if slots_at_s is None else ready_s - accepted_s,
    )
    since_s, ahead_s = case.observed.running_since_s, case.history.ahead_s
    if since_s is None or ahead_s is None or since_s == request.running_since_s:
        return times
    stopped_s = min(max(since_s + ahead_s, ready_s), now_s)
    return replace(times, waited_s=stopped_s - ready_s, restored_s=now_s - stopped_s)


def describe_states(times: RequestTimes) -> str:
    """Return the times for a person.

    >>> describe_states(RequestTimes(2.0, None, 57.0, 8.0))
    'accepted after 2 s, the job ran on for 57 s, restored in 8 s'
    """
    known = ((_NAMES[one.name], getattr(times, one.name)) for one in fields(times))
    return ", ".join(f"{name} {seconds:.0f} s" for name, seconds in known if seconds is not None)


def name_state(request: Request, observed: ObservedJob) -> str:
    """Return in which state a request is, for a person."""
    if request.arrived_at_s is None:
        return "sent, and not seen in Flink yet"
    since_s = observed.running_since_s
    if not observed.running or (since_s is not None and since_s != request.running_since_s):
        return "the job restores its state"
    return "the job runs on until Flink begins"


def note_caught_up(history: JobHistory, case: Case) -> JobHistory:
    """Return the history with when the job had caught up after its last request, once."""
    at_s, confirmed_s = case.outcome.caught_up_at_s, history.confirmed_at_s
    if at_s is None or confirmed_s is None or case.history.to_judge is None or not history.times_of_requests:
        return history
    *others, last = history.times_of_requests
    if last.caught_up_s is not None:
        return history
    return replace(history, times_of_requests=(*others, replace(last, caught_up_s=max(at_s - confirmed_s, 0.0))))


def add_times(history: JobHistory, times: RequestTimes) -> tuple[RequestTimes, ...]:
    """Return the times of a job's last requests with those of one more."""
    return (*history.times_of_requests, times)[-_REMEMBERED:]
