"""When a job stopped and ran again, told from ``job``, ``exceptions`` and ``checkpoints`` replies.

Two polls with different RUNNING times have a stop between them.  Its time is, in this order: a failure that Flink
lists, the time at which it left RUNNING if a reply shows it, else the last moment at which it was seen at work (a reply
in state RUNNING or a completed checkpoint, whichever is later): then the downtime is an upper bound.

All times are whole epoch milliseconds, as Flink's are. Those that Flink tells are brought to the clock of the polls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from include.flink.job_states import ENDED_WITHOUT_FAILURE, RUNNING
from models.observing.job_ends import JobLifetime, goes_on

# Job replies may be a few seconds old (Flink keeps them for its refresh interval): a stop may precede the last of them.
_STALE_JOB_REPLY_S = 10
# Flink's default `web.refresh-interval`: a reply of the former run that came after the new one ran was as old as this.
_REFRESH_MS = 3_000
_NO_FACTS = JobLifetime()

Vertices = tuple[tuple[str, int, str], ...]
"""Vertex id, parallelism and operator of each vertex of a job, in order of the ids."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """A time for which a job ran without a stop, as its replies in state RUNNING show it.

    Attributes:
        running_ms: when it came to run.
        first_seen_ms, last_seen_ms: the first and the last reply that showed it.
        job_id: Flink's.
        vertices: by the last reply; None where they are not told, or nothing is made of them.
    """

    running_ms: int
    first_seen_ms: int
    last_seen_ms: int
    job_id: str = ""
    vertices: Vertices | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was completed; ``state_bytes`` None where its size is not told."""

    completed_ms: int
    triggered_ms: int | None = None
    state_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """A time in which a job did not run.

    Attributes:
        started_ms: when it stopped.
        ended_ms: when it ran again, or stopped again before it was seen running; None while it is down.
        cause: the first line of the failure; None where Flink lists none.
        before, after: the runs around it; None of a job that is down.
        checkpoint: the last that was completed before it.
        is_followed: it failed again before it was seen running: another stop follows between the same two runs.
    """

    started_ms: int
    ended_ms: int | None
    cause: str | None = None
    before: JobRun | None = None
    after: JobRun | None = None
    checkpoint: Checkpoint | None = None
    is_followed: bool = False


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What replies tell of the jobs of one name.

    Attributes:
        runs: in any order.
        stopped_ms: times at which ``job`` replies say that it stopped.
        failures: time -> cause.
        checkpoints: job id -> completed checkpoints in order of completion.
        facts: job id -> of its beginning and end.
        ahead_ms: by how much the clock of what Flink tells is ahead of that of the replies' times.
    """

    runs: Collection[JobRun]
    stopped_ms: Collection[int] = ()
    failures: Mapping[int, str] = field(default_factory=dict)
    checkpoints: Mapping[str, Sequence[Checkpoint]] = field(default_factory=dict)
    facts: Mapping[str, JobLifetime] = field(default_factory=dict)
    ahead_ms: int = 0


def find_stops(history: RunHistory) -> list[Stop]:
    """Return the stops after which a job ran again, in order of time; a job that came to its end did not stop."""
    history = _set_clock(history)
    return [
        stop
        for between in _pair_runs(history.runs)
        if _continues(between, history)
        for stop in _split(between, history)
    ]


def _set_clock(history: RunHistory) -> RunHistory:
    """Return what Flink tells by the clock of the replies' times."""
    ahead_ms = history.ahead_ms
    if not ahead_ms:
        return history

    def behind(at_ms: int | None) -> int | None:
        return None if at_ms is None else at_ms - ahead_ms

    return RunHistory(
        runs=[replace(run, running_ms=run.running_ms - ahead_ms) for run in history.runs],
        stopped_ms={at_ms - ahead_ms for at_ms in history.stopped_ms},
        failures={at_ms - ahead_ms: cause for at_ms, cause in history.failures.items()},
        checkpoints={
            job_id: [
                replace(one, completed_ms=one.completed_ms - ahead_ms, triggered_ms=behind(one.triggered_ms))
                for one in completed
            ]
            for job_id, completed in history.checkpoints.items()
        },
        facts={
            job_id: replace(one, ended_ms=behind(one.ended_ms), savepoint_ms=behind(one.savepoint_ms))
            for job_id, one in history.facts.items()
        },
    )


def find_open_stop(state: str, ran_ms: int | None) -> Stop | None:
    """Return the stop of a job whose last reply does not show it running: since it was last seen so.

    A job that has ended has one, too: what is measured in the window in which it ends is no measurement.  ``ran_ms`` is
    the last reply in state RUNNING; None for never.
    """
    return None if state == RUNNING or ran_ms is None else Stop(ran_ms, None)


def is_outage(state: str) -> bool:
    """Return whether a job that ran and is in a state now should run."""
    return state != RUNNING and state not in ENDED_WITHOUT_FAILURE


@dataclass(frozen=True, slots=True)
class _Transition:
    """From one run to the next; ``at_work_ms``: when the former was last seen at work."""

    before: JobRun
    after: JobRun
    at_work_ms: int


def _pair_runs(runs: Collection[JobRun]) -> Iterator[_Transition]:
    """Yield consecutive runs that differ in their RUNNING time, also across a resubmission under one name."""
    in_order = sorted(runs, key=lambda run: (run.running_ms, run.job_id))
    for before, after in pairwise(in_order):
        at_work_ms = before.last_seen_ms
        if at_work_ms >= after.first_seen_ms:
            continue
        if at_work_ms >= after.running_ms:
            at_work_ms = after.running_ms - _REFRESH_MS
        yield _Transition(before, after, max(before.running_ms, at_work_ms))


def _continues(between: _Transition, history: RunHistory) -> bool:
    former, later = between.before, between.after
    if former.job_id == later.job_id:
        return True
    facts = history.facts
    return goes_on(
        facts.get(former.job_id, _NO_FACTS),
        facts.get(later.job_id, _NO_FACTS),
        ran_since_ms=former.running_ms,
        running_ms=later.running_ms,
    )


def _split(between: _Transition, history: RunHistory) -> Iterator[Stop]:
    """Split a transition into its stops: several when the job was at work between two of them.

    A checkpoint completed between two failures shows that the job ran there; so does a stop that Flink dates well after
    the failure before.  Failures in one downtime (of an attempt to restart) are one stop.
    """
    before, after = between.before, between.after
    completed = history.checkpoints.get(before.job_id, ())
    times_ms = [one.completed_ms for one in completed]

    def last_checkpoint(at_ms: int) -> Checkpoint | None:
        done = bisect_right(times_ms, at_ms)
        return completed[done - 1] if done else None

    earliest_ms = max(before.running_ms, between.at_work_ms - 1000 * _STALE_JOB_REPLY_S)
    reported = {*history.stopped_ms, *history.failures}
    inside = sorted(at for at in reported if earliest_ms < at <= after.running_ms)
    if not inside:
        last = last_checkpoint(after.running_ms)
        at_work_ms = between.at_work_ms if last is None else max(between.at_work_ms, last.completed_ms)
        yield Stop(min(after.running_ms, at_work_ms), after.running_ms, None, before, after, last)
        return
    heads = inside[:1]
    for former, at in pairwise(inside):
        last = last_checkpoint(at)
        has_worked = last is not None and last.completed_ms > former
        has_stopped_again = at not in history.failures and at // 1000 - former // 1000 > _STALE_JOB_REPLY_S
        if has_worked or has_stopped_again:
            heads.append(at)
    for at, following in zip(heads, [*heads[1:], None], strict=True):
        ended_ms = after.running_ms if following is None else following
        cause = history.failures.get(at)
        yield Stop(at, ended_ms, cause, before, after, last_checkpoint(at), is_followed=following is not None)
