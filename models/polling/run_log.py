"""What is kept of one job to tell when it ran and stopped; the rules are those of silver (``models/observing``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from include.domain.finished_operators import RESTORING
from include.flink.job_states import RUNNING
from models.observing.clocks import find_ahead_ms
from models.observing.disturbances import find_restores, is_fresh_start
from models.observing.stops import Checkpoint, JobRun, RunHistory, Stop, find_open_stop, find_stops, is_outage
from models.polling.job_replies import CompletedCheckpoint, JobReply

_RETAINED = 64  # runs, stops, failures and checkpoints of a job: more than any span of polls needs
_OF_A_CLOCK = 5  # replies whose median tells its difference: one may be slow, and a clock that was set is soon known


@dataclass(slots=True)
class RunLog:
    """What is kept of one job; times in epoch milliseconds.

    Attributes:
        runs: time at which it came to run -> what replies in state RUNNING show of it.
        stopped_ms: times at which replies say that it stopped.
        failures: time -> cause.
        checkpoints: time at which one was completed -> when its barriers set out, None where that is not known.
        restore_changes: time of a reply -> whether it showed a running job with tasks that did not work yet; of those
            alike in a row the first.
        state: of the last reply.
        polled_ms, ran_ms: the last reply, and the last in state RUNNING; None for never.
        first_polled_ms, first_running_ms: the first reply that told when it came to run, and the earliest such time.
        differences_ms: of the last replies: the JobManager's clock less that of the polls.
    """

    runs: dict[int, JobRun] = field(default_factory=dict)
    stopped_ms: set[int] = field(default_factory=set)
    failures: dict[int, str] = field(default_factory=dict)
    checkpoints: dict[int, int | None] = field(default_factory=dict)
    restore_changes: dict[int, bool] = field(default_factory=dict)
    is_restoring: bool = False
    state: str = ""
    polled_ms: int | None = None
    ran_ms: int | None = None
    first_polled_ms: int | None = None
    first_running_ms: int | None = None
    differences_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_OF_A_CLOCK))

    def add_reply(self, at_ms: int, reply: JobReply) -> None:
        """Take in a ``job`` reply; replies come in order of time."""
        self.state, self.polled_ms = reply.state, at_ms
        self._note_restore(at_ms, reply)
        if reply.told_at_ms is not None:
            self.differences_ms.append(reply.told_at_ms - at_ms)
        if not self.stopped_ms.issuperset(reply.stopped_ms):
            self.stopped_ms = set(sorted(self.stopped_ms.union(reply.stopped_ms))[-_RETAINED:])
        if reply.running_ms is not None:
            if self.first_polled_ms is None or self.first_running_ms is None:
                self.first_polled_ms, self.first_running_ms = at_ms, reply.running_ms
            self.first_running_ms = min(self.first_running_ms, reply.running_ms)
        if reply.state != RUNNING:
            return
        self.ran_ms = at_ms
        if reply.running_ms is not None:
            run = self.runs.get(reply.running_ms, JobRun(reply.running_ms, at_ms, at_ms))
            self.runs[reply.running_ms] = replace(run, last_seen_ms=at_ms)
            if len(self.runs) > _RETAINED:
                del self.runs[min(self.runs)]

    def _note_restore(self, at_ms: int, reply: JobReply) -> None:
        was, self.is_restoring = self.is_restoring, False
        if reply.state == RUNNING:
            self.is_restoring = any(vertex.state in RESTORING for vertex in reply.vertices)
        if was != self.is_restoring:
            self.restore_changes[at_ms] = self.is_restoring
            if len(self.restore_changes) > 2 * _RETAINED:
                del self.restore_changes[min(self.restore_changes)]

    def add_failures(self, failures: Mapping[int, str]) -> None:
        """Take in what an ``exceptions`` reply lists."""
        for at_ms, cause in failures.items():
            self.failures[at_ms] = min(cause, self.failures.get(at_ms, cause))
        if len(self.failures) > _RETAINED:
            self.failures = {at_ms: self.failures[at_ms] for at_ms in sorted(self.failures)[-_RETAINED:]}

    def add_checkpoints(self, completed: Iterable[CompletedCheckpoint]) -> None:
        """Take in what a ``checkpoints`` reply lists."""
        self.checkpoints |= {one.completed_ms: one.began_ms for one in completed}
        if len(self.checkpoints) > _RETAINED:
            self.checkpoints = {at_ms: self.checkpoints[at_ms] for at_ms in sorted(self.checkpoints)[-_RETAINED:]}

    def list_checkpoints(self) -> dict[int, int | None]:
        """Return :attr:`checkpoints` by the polls' clock."""
        ahead_ms = find_ahead_ms(self.differences_ms)
        return {
            done_ms - ahead_ms: None if began_ms is None else began_ms - ahead_ms
            for done_ms, began_ms in self.checkpoints.items()
        }

    @property
    def has_stops(self) -> bool:
        """Whether :meth:`stops` can be other than empty; nearly always False, and quick to tell."""
        return len(self.runs) > 1 or self.is_down or self.has_fresh_start

    @property
    def has_disturbances(self) -> bool:
        """Whether :meth:`disturbances` can be other than empty."""
        return self.has_stops or bool(self.restore_changes) or self.state != RUNNING

    def disturbances(self) -> list[Stop]:
        """Return the times in which windows tell nothing of its work.

        They are its stops, its end, and while tasks were restored.
        """
        replies = list(self.restore_changes.items())
        if self.is_restoring and self.polled_ms is not None:
            replies.append((self.polled_ms, True))
        restores = [Stop(began_ms, ended_ms) for began_ms, ended_ms in find_restores(replies)]
        return [*self._closed_stops(), *self._open_stops(), *restores]

    @property
    def is_down(self) -> bool:
        """Whether it ran once, does not by its last reply, and has not come to its end."""
        return self.ran_ms is not None and is_outage(self.state)

    @property
    def started_ms(self) -> int | None:
        """When it came to run first, by the polls' clock; None where that is not told."""
        first_ms = self.first_running_ms
        return None if first_ms is None else first_ms - find_ahead_ms(self.differences_ms)

    @property
    def has_fresh_start(self) -> bool:
        """Whether it had not run for long when it was first polled."""
        if self.first_polled_ms is None or self.started_ms is None:
            return False
        return is_fresh_start(self.first_polled_ms, self.started_ms)

    def stops(self) -> list[Stop]:
        """Return its stops in order of time, the one that lasts as the last.

        The start of a job that was submitted just before its first poll is one without length; its end is none.
        """
        return [*self._closed_stops(), *(self._open_stops() if self.is_down else ())]

    def _closed_stops(self) -> list[Stop]:
        start_ms, ahead_ms = self.started_ms, find_ahead_ms(self.differences_ms)
        starts = [Stop(start_ms, start_ms)] if self.has_fresh_start and start_ms is not None else []
        completed = [Checkpoint(at_ms) for at_ms in sorted(self.checkpoints)]
        history = RunHistory(self.runs.values(), self.stopped_ms, self.failures, {"": completed}, ahead_ms=ahead_ms)
        return [*starts, *find_stops(history)]

    def _open_stops(self) -> list[Stop]:
        stop = find_open_stop(self.state, self.ran_ms)
        return [] if stop is None else [stop]
