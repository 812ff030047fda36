"""Asks Flink what a request has to know: checkpoints, memory, failures, and how long Flink will wait with a rescale."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from controller.actuators.flink_configuration import ClusterConfiguration, FlinkConfiguration
from include.flink.client import FlinkClient
from include.flink.faults import FlinkError, FlinkRefusedError, FlinkUnreachableError
from include.flink.rescale_times import WAITS_FOR_CHECKPOINT_SINCE, RescaleTimes, read_rescale_times
from include.flink.versions import GC_TIME_SINCE, Version
from models.control.readiness import Checkpoints, Failure, MemoryUsage, Readiness
from models.polling import failure_replies, memory_replies
from models.polling.checkpoint_replies import CheckpointConfig, read_checkpoints, read_config
from models.polling.faults import ReplyError

log = logging.getLogger(__name__)
T = TypeVar("T")

_AT_ONCE_S = 5.0  # what is the same for all jobs of a cluster is asked once in a tick
_FORGET_AFTER = 1.5  # times the time in which Flink gives a checkpoint up: it was for another request
_RETAINED_FAILURES = 64  # of a job
_OFF = ("ot enabled", "ot been enabled")  # Checkpointing (has) not (been) enabled: 404 with it


@dataclass(frozen=True, slots=True)
class _TriggeredCheckpoint:
    """A checkpoint that was asked for: when (monotonic s), the last completed one then, whether Flink refused."""

    at_s: float
    last_id: int
    has_failed: bool


class FlinkReadiness:
    """Asks before requests; may be used by several threads. The clock is monotonic."""

    def __init__(
        self, client: FlinkClient, cluster: str, configuration: FlinkConfiguration, clock: Callable[[], float]
    ) -> None:
        self._client, self._cluster, self._clock = client, cluster, clock
        self._configuration = configuration
        self._lock = threading.Lock()
        self._version: Version | None = None
        self._ahead_s: float | None = None  # Flink's time less the monotonic one
        self._memory: tuple[float, MemoryUsage] | None = None
        self._configs: dict[str, CheckpointConfig] = {}  # by job id, as told last
        self._asked: dict[str, _TriggeredCheckpoint] = {}
        self._last_ids: dict[str, int] = {}
        self._failures: dict[str, tuple[Failure, ...]] = {}  # that were told so far: Flink may remember only the last

    def note_version(self, version: Version | None) -> None:
        """Keep the version that the cluster reports."""
        self._version = version

    def note_time(self, now_ms: object) -> None:
        """Keep the time that a reply about a job tells."""
        if type(now_ms) is int and now_ms > 0:
            self._ahead_s = now_ms / 1000.0 - self._clock()

    def read(self, job_id: str) -> Readiness:
        """Return what Flink says of a job now; what it does not say is unknown, with the reason."""
        try:
            return self._read(job_id, [])
        except FlinkUnreachableError as error:
            return Readiness(unknown=str(error), autoscaler_unknown=str(error))

    def _read(self, job_id: str, unknown: list[str]) -> Readiness:
        facts = self._configuration.read_cluster(_AT_ONCE_S)
        own, own_unknown = self._configuration.find_autoscaler(job_id)
        checkpoints = _ask(lambda: self._read_checkpoints(job_id), unknown)
        memory = _ask(self._read_memory, unknown)
        times = self._read_times(facts, checkpoints)
        asked, now_s = self._find_asked(job_id), self._clock()
        return Readiness(
            checkpoints=checkpoints,
            memory=memory,
            failures=_ask(lambda: self._read_failures(job_id), unknown),
            now_s=None if self._ahead_s is None else now_s + self._ahead_s,
            wait_s=times.total_s,
            wait_detail=_describe(times),
            # With several at once the next checkpoint is completed, and Flink begins, in the midst of a savepoint.
            checkpoint_wait_s=0.0 if self._takes_several(job_id) else times.checkpoint_s,
            waits_for_checkpoint=self._version is None or self._version >= WAITS_FOR_CHECKPOINT_SINCE,
            tells_gc=self._version is None or self._version >= GC_TIME_SINCE,
            asked_ago_s=None if asked is None else now_s - asked.at_s,
            is_fresh=asked is not None and (asked.has_failed or self._last_ids.get(job_id, 0) > asked.last_id),
            other_autoscaler=facts.autoscaler or own,
            autoscaler_unknown=facts.unknown or own_unknown,
            unknown="; ".join(unknown),
        )

    def read_failures(self, job_id: str) -> tuple[Failure, ...] | None:
        """Return the failures that Flink remembers of a job; None when it does not tell."""
        unknown: list[str] = []
        try:
            return _ask(lambda: self._read_failures(job_id), unknown)
        except FlinkUnreachableError as error:
            unknown.append(str(error))
            return None
        finally:
            if unknown:
                log.warning("cluster %s: failures of job %s are unknown: %s", self._cluster, job_id, unknown[0])

    def trigger(self, job_id: str) -> None:
        """Ask for a checkpoint; that it is refused is logged and harms nothing."""
        has_failed = False
        try:
            self._client.trigger_checkpoint(job_id)
        except Exception as error:  # whatever it is: a request does without
            has_failed = True
            log.warning("cluster %s: no checkpoint of job %s was asked for: %s", self._cluster, job_id, error)
        with self._lock:
            self._asked[job_id] = _TriggeredCheckpoint(self._clock(), self._last_ids.get(job_id, 0), has_failed)

    def end_wait(self, job_id: str) -> None:
        """Forget that a checkpoint was asked for before a request: it has left."""
        with self._lock:
            self._asked.pop(job_id, None)

    def forget(self, job_ids: Iterable[str]) -> None:
        """Forget all jobs but these."""
        known = set(job_ids)
        with self._lock:
            self._configs = {job_id: one for job_id, one in self._configs.items() if job_id in known}
            self._asked = {job_id: one for job_id, one in self._asked.items() if job_id in known}
            self._last_ids = {job_id: one for job_id, one in self._last_ids.items() if job_id in known}
            self._failures = {job_id: one for job_id, one in self._failures.items() if job_id in known}

    def _read_checkpoints(self, job_id: str) -> Checkpoints:
        config = self._read_config(job_id)
        if config.interval_s is None:
            return Checkpoints(None, None)
        result = read_checkpoints(self._client.checkpoints(job_id), config)
        with self._lock:
            self._last_ids[job_id] = result.last_id
        return result

    def _read_failures(self, job_id: str) -> tuple[Failure, ...]:
        """Return what Flink tells now with what it told before; ``web.exception-history-size`` may be 1."""
        reported = failure_replies.read_failures(self._client.exceptions(job_id))
        with self._lock:
            every = sorted({*self._failures.get(job_id, ()), *reported}, key=lambda one: (one.at_s, one.kind))
            self._failures[job_id] = tuple(every[-_RETAINED_FAILURES:])
            return self._failures[job_id]

    def _read_config(self, job_id: str) -> CheckpointConfig:
        # Not from memory: an application that is deployed anew has the same id, and may take no checkpoints any more.
        try:
            result = read_config(self._client.checkpoint_config(job_id))
        except FlinkRefusedError as error:
            if not any(text in error.message for text in _OFF):
                raise
            result = CheckpointConfig(None)
        with self._lock:
            self._configs[job_id] = result
        return result

    def _takes_several(self, job_id: str) -> bool:
        with self._lock:
            return self._configs.get(job_id, CheckpointConfig(None)).is_concurrent

    def _read_memory(self) -> MemoryUsage:
        now_s = self._clock()
        with self._lock:
            if self._memory is not None and now_s - self._memory[0] < _AT_ONCE_S:
                return self._memory[1]
        heap, gc = map(self._client.task_manager_metrics, (memory_replies.HEAP_METRICS, memory_replies.GC_METRICS))
        result = memory_replies.read_memory(heap, gc)
        with self._lock:
            self._memory = (now_s, result)
        return result

    def _read_times(self, facts: ClusterConfiguration, checkpoints: Checkpoints | None) -> RescaleTimes:
        return read_rescale_times(facts.told, None if checkpoints is None else checkpoints.interval_s, self._version)

    def _find_asked(self, job_id: str) -> _TriggeredCheckpoint | None:
        with self._lock:
            asked, config = self._asked.get(job_id), self._configs.get(job_id, CheckpointConfig(None))
            if asked is not None and self._clock() - asked.at_s > _FORGET_AFTER * config.timeout_s:
                del self._asked[job_id]
                return None
            return asked


def _ask(question: Callable[[], T], unknown: list[str]) -> T | None:
    """Return an answer; None, and why, where it is refused or cannot be read."""
    try:
        return question()
    except FlinkUnreachableError:
        raise
    except (FlinkError, ReplyError) as error:
        unknown.append(str(error))
    except Exception as error:  # what one reply holds must not hide the others
        log.exception("a reply ended in an error of Tidewise")
        unknown.append(type(error).__name__)
    return None


def _describe(times: RescaleTimes) -> str:
    parts = (
        (times.checkpoint_s, "for the next checkpoint"),
        (times.cooldown_s, "of cooldown"),
        (times.slots_s, "for slots"),
    )
    return ", ".join(f"{seconds:.0f} s {what}" for seconds, what in parts if seconds > 0)
