"""When one job ran and stopped, told from its replies as for ``silver.rescales``.

Two polls with different RUNNING times have a stop between them.  Its time is, in this order: a failure that Flink
lists, the time at which it left RUNNING if a reply shows it, else the last moment at which it was seen at work (a reply
in state RUNNING or a completed checkpoint, whichever is later).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from include.domain.finished_operators import RESTORING
from include.flink.job_states import ENDED_WITHOUT_FAILURE, RUNNING
from models.live.job_replies import JobReply

# Job replies may be a few seconds old (Flink keeps them for its refresh interval): a stop may precede the last of them.
_STALE_REPLY_MS = 10_000
# Flink's default `web.refresh-interval`: a reply of the former run that came after the new one ran was as old as this.
_REFRESH_MS = 3_000
# A job that came to run this shortly before its first reply started then.
_FRESH_START_S = 60
_RETAINED = 64  # runs, stops, failures and checkpoints of a job: more than any span of polls needs


@dataclass(frozen=True, slots=True)
class Stop:
    """A time in which a job did not run; epoch milliseconds, ``ended_ms`` None while it lasts.

    The start of a job that was submitted just before its first poll is one without length.
    """

    started_ms: int
    ended_ms: int | None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class _Transition:
    ran_since_ms: int
    last_seen_ms: int
    running_ms: int


@dataclass(slots=True)
class RunLog:
    """What is kept of one job.

    Attributes:
        runs: time at which it came to run -> first and last reply in state RUNNING that showed it.
        stopped_ms: times at which replies say that it stopped.
        failures: time -> cause.
        checkpoints_ms: when checkpoints were completed.
        restores: times in which replies showed tasks of the running job that did not work yet: began -> until the next
            reply without such, or the last one.
        state: of the last reply.
        ran_ms: the last reply in state RUNNING; None for never.
        first_polled_ms, first_running_ms: the first reply that told when it came to run, and the earliest such time.
    """

    runs: dict[int, tuple[int, int]] = field(default_factory=dict)
    stopped_ms: set[int] = field(default_factory=set)
    failures: dict[int, str] = field(default_factory=dict)
    checkpoints_ms: set[int] = field(default_factory=set)
    restores: dict[int, int] = field(default_factory=dict)
    is_restoring: bool = False
    state: str = ""
    ran_ms: int | None = None
    first_polled_ms: int | None = None
    first_running_ms: int | None = None

    def add_reply(self, at_ms: int, reply: JobReply) -> None:
        """Take in a ``job`` reply; replies come in order of time."""
        self.state = reply.state
        self._note_restore(at_ms, reply)
        if not self.stopped_ms.issuperset(reply.stopped_ms):
            self.stopped_ms = _newest(self.stopped_ms.union(reply.stopped_ms))
        if reply.running_ms is not None:
            if self.first_polled_ms is None or self.first_running_ms is None:
                self.first_polled_ms, self.first_running_ms = at_ms, reply.running_ms
            self.first_running_ms = min(self.first_running_ms, reply.running_ms)
        if reply.state != RUNNING:
            return
        self.ran_ms = at_ms
        if reply.running_ms is not None:
            first, _ = self.runs.get(reply.running_ms, (at_ms, at_ms))
            self.runs[reply.running_ms] = (first, at_ms)
            if len(self.runs) > _RETAINED:
                del self.runs[min(self.runs)]

    def _note_restore(self, at_ms: int, reply: JobReply) -> None:
        was, self.is_restoring = self.is_restoring, False
        if reply.state == RUNNING:
            self.is_restoring = any(vertex.state in RESTORING for vertex in reply.vertices)
        if was:
            self.restores[max(self.restores)] = at_ms
        elif self.is_restoring:
            self.restores[at_ms] = at_ms
            if len(self.restores) > _RETAINED:
                del self.restores[min(self.restores)]

    def add_failures(self, failures: Mapping[int, str]) -> None:
        """Take in what an ``exceptions`` reply lists."""
        for at_ms, cause in failures.items():
            self.failures[at_ms] = min(cause, self.failures.get(at_ms, cause))
        if len(self.failures) > _RETAINED:
            self.failures = {at_ms: self.failures[at_ms] for at_ms in sorted(self.failures)[-_RETAINED:]}

    def add_checkpoints(self, completed_ms: Iterable[int]) -> None:
        """Take in what a ``checkpoints`` reply lists."""
        self.checkpoints_ms = _newest(self.checkpoints_ms.union(completed_ms))

    @property
    def has_stops(self) -> bool:
        """Whether :meth:`stops` can be other than empty; nearly always False, and quick to tell."""
        return len(self.runs) > 1 or self.is_down or self.has_fresh_start

    @property
    def has_disturbances(self) -> bool:
        """Whether :meth:`disturbances` can be other than empty."""
        return self.has_stops or bool(self.restores)

    def disturbances(self) -> list[Stop]:
        """Return the times in which windows tell nothing of its work: its stops, and while tasks were restored."""
        return [*self.stops(), *(Stop(began_ms, ended_ms) for began_ms, ended_ms in self.restores.items())]

    @property
    def is_down(self) -> bool:
        """Whether it ran once, does not by its last reply, and has not come to its end."""
        return self.state != RUNNING and self.state not in ENDED_WITHOUT_FAILURE and self.ran_ms is not None

    @property
    def has_fresh_start(self) -> bool:
        """Whether it had not run for long when it was first polled."""
        if self.first_polled_ms is None or self.first_running_ms is None:
            return False
        return self.first_polled_ms // 1000 - self.first_running_ms // 1000 <= _FRESH_START_S

    def stops(self) -> list[Stop]:
        """Return its stops in order of time, the one that lasts as the last."""
        result: list[Stop] = []
        if self.has_fresh_start and self.first_running_ms is not None:
            result.append(Stop(self.first_running_ms, self.first_running_ms))
        completed = sorted(self.checkpoints_ms)
        for transition in self._transitions():
            result += self._stops_of(transition, completed)
        if self.is_down and self.ran_ms is not None:
            result.append(Stop(self.ran_ms, None))
        return result

    def _transitions(self) -> list[_Transition]:
        """Return consecutive runs that differ in their RUNNING time."""
        result = []
        for before, running_ms in pairwise(sorted(self.runs)):
            last_observed_ms = self.runs[before][1]
            if last_observed_ms >= self.runs[running_ms][0]:
                continue
            if last_observed_ms >= running_ms:
                last_observed_ms = running_ms - _REFRESH_MS
            result.append(_Transition(before, max(before, last_observed_ms), running_ms))
        return result

    def _stops_of(self, transition: _Transition, completed: list[int]) -> list[Stop]:
        """Split a transition into its stops: several when the job was at work between two of them.

        A checkpoint completed between two failures shows that the job ran there; so does a stop that Flink dates well
        after the failure before.  Failures in one downtime (of an attempt to restart) are one stop.
        """
        earliest = max(transition.ran_since_ms, transition.last_seen_ms - _STALE_REPLY_MS)
        reported = self.stopped_ms.union(self.failures)
        inside = sorted(at for at in reported if earliest < at <= transition.running_ms)
        if not inside:
            done = completed[: bisect_right(completed, transition.running_ms)]
            at_work = max([transition.last_seen_ms, *done[-1:]])
            return [Stop(min(transition.running_ms, at_work), transition.running_ms)]
        heads = [inside[0]]
        for before, at in pairwise(inside):
            worked = bisect_right(completed, at) > bisect_right(completed, before)
            has_stopped_again = at not in self.failures and at // 1000 - before // 1000 > _STALE_REPLY_MS // 1000
            if worked or has_stopped_again:
                heads.append(at)
        ends = [*heads[1:], transition.running_ms]
        return [Stop(at, end, self.failures.get(at)) for at, end in zip(heads, ends, strict=True)]


def _newest(times: set[int]) -> set[int]:
    return set(sorted(times)[-_RETAINED:]) if len(times) > _RETAINED else times
