"""A job behind the REST double whose rescales take what Flink's take: they wait, restart the job, and may break it.

Since 1.20 a rescale begins with the next completed checkpoint, or after the longest delay; it ends savepoints that are
in progress, and the job goes back to its last checkpoint. What befell the job is counted here, by nobody's belief.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flink_server import FakeJob, checkpoint_statistics, completed_checkpoint

SUSPENDING = "Checkpoint Coordinator is suspending."
OFF_MS = 9_223_372_036_854_775_807


@dataclass
class Checkpoint:
    """A checkpoint or savepoint; times in epoch seconds."""

    number: int
    began_s: float
    is_savepoint: bool = False
    lasts_s: float = 2.0
    status: str = "IN_PROGRESS"
    ended_s: float | None = None

    def reply(self, state_bytes: int) -> dict[str, Any]:
        if self.status == "COMPLETED" and self.ended_s is not None:
            return completed_checkpoint(self.number, self.ended_s, state_bytes) | {"is_savepoint": self.is_savepoint}
        kind = "SAVEPOINT" if self.is_savepoint else "CHECKPOINT"
        reported = {
            "id": self.number,
            "status": self.status,
            "is_savepoint": self.is_savepoint,
            "checkpoint_type": kind,
        }
        times = {"trigger_timestamp": round(1000 * self.began_s), "latest_ack_timestamp": -1}
        failed = {} if self.ended_s is None else {"failure_timestamp": round(1000 * self.ended_s)}
        return {**reported, **times, **failed}


@dataclass
class RescalingJob(FakeJob):
    """A job with checkpoints, on a cluster of its own version and delays.

    Attributes:
        began_s: when it was submitted.
        interval_s: of checkpoints; None: off.
        max_concurrent: checkpoints at once, a savepoint among them.
        waits: whether a rescale waits for a checkpoint (Flink 1.20 and later).
        max_delay_s: longest that it waits; None: three intervals.
        slots_s: from when its slots are there after a request: a checkpoint before that begins nothing.
        downtime_s: of a restart.
        are_failing: whether its checkpoints fail.
        breaks: the exception with which the job fails three seconds after it runs at a parallelism; None: it does not.
        replays_s: what each restart went back, s; infinite where it began without state.
        broken_savepoints: how many a rescale has ended.
        outage_s: how long the job did not run.
    """

    began_s: float = 0.0
    interval_s: float | None = 600.0
    checkpoint_s: float = 2.0
    max_concurrent: int = 1
    waits: bool = True
    max_delay_s: float | None = None
    slots_s: float = 0.0
    downtime_s: float = 4.0
    are_failing: bool = False
    state_bytes: int = 1_000_000
    breaks: Callable[[dict[str, int]], str | None] = lambda _: None
    replays_s: list[float] = field(default_factory=list)
    broken_savepoints: int = 0
    outage_s: float = 0.0
    triggered: list[float] = field(default_factory=list)
    made: list[Checkpoint] = field(default_factory=list)
    failures: list[tuple[float, str]] = field(default_factory=list)
    _now_s: float = 0.0
    _asked_s: float | None = None
    _back_at_s: float = 0.0
    _ran_since_s: float = 0.0
    _restored_s: float | None = None
    _due_s: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._now_s = self._ran_since_s = self.began_s
        self._due_s = self.began_s + (self.interval_s or 0.0)

    def follow(self, now_s: float) -> None:
        while self._now_s + 1 <= now_s:
            self._now_s += 1
            self._live()

    def put(self, bounds: dict[str, int], now_s: float) -> None:
        self.requested = bounds
        if bounds == self.parallelism:
            self._asked_s = None
        elif self.state == "RUNNING":
            self._asked_s = now_s
            if not self.waits:
                self._restart()

    def savepoint(self, lasts_s: float) -> None:
        """Begin a savepoint, as a person does."""
        self._begin(is_savepoint=True, lasts_s=lasts_s)

    def trigger_checkpoint(self, now_s: float) -> None:
        self.triggered.append(now_s)
        if len(self._in_progress) < self.max_concurrent:
            self._begin(is_savepoint=False, lasts_s=self.checkpoint_s)

    def checkpoint_config(self) -> dict[str, Any]:
        interval_ms = OFF_MS if self.interval_s is None else round(1000 * self.interval_s)
        return super().checkpoint_config() | {"interval": interval_ms, "max_concurrent": self.max_concurrent}

    def checkpoints(self, now_s: float) -> dict[str, Any]:
        def latest(status: str, *, is_savepoint: bool = False) -> dict[str, Any] | None:
            result = [one for one in self.made if one.status == status and one.is_savepoint == is_savepoint]
            return result[-1].reply(self.state_bytes) if result else None

        restored = None if self._restored_s is None else {"id": 1, "restore_timestamp": round(1000 * self._restored_s)}
        history = [one.reply(self.state_bytes) for one in reversed(self.made)]
        return checkpoint_statistics(
            history,
            completed=latest("COMPLETED"),
            savepoint=latest("COMPLETED", is_savepoint=True),
            failed=latest("FAILED"),
            restored=restored,
        )

    def exceptions(self) -> dict[str, Any]:
        entries = [
            {"exceptionName": text.splitlines()[0].split(":")[0], "stacktrace": text, "timestamp": round(1000 * at_s)}
            for at_s, text in reversed(self.failures)
        ]
        return {"exceptionHistory": {"entries": entries[:16], "truncated": len(entries) > 16}}

    # what happens in a second

    @property
    def _in_progress(self) -> list[Checkpoint]:
        return [one for one in self.made if one.status == "IN_PROGRESS"]

    def _live(self) -> None:
        now_s = self._now_s
        if self.state != "RUNNING":
            self.outage_s += 1
            if now_s >= self._back_at_s:
                self._come_back()
            return
        text = self.breaks(self.parallelism)
        if text is not None and now_s - self._ran_since_s >= 3:
            self.failures.append((now_s, text))
            self._restart()
            return
        for one in self._in_progress:
            if now_s - one.began_s >= one.lasts_s:
                self._end(one, "FAILED" if self.are_failing and not one.is_savepoint else "COMPLETED")
        is_due = self.state == "RUNNING" and self.interval_s is not None and now_s >= self._due_s
        if is_due and self.interval_s is not None and len(self._in_progress) < self.max_concurrent:
            self._due_s = now_s + self.interval_s
            self._begin(is_savepoint=False, lasts_s=self.checkpoint_s)
        if self._asked_s is not None and now_s - self._asked_s >= self._longest_s():
            self._restart()

    def _longest_s(self) -> float:
        if not self.waits or self.interval_s is None:
            return 0.0
        return 3 * self.interval_s if self.max_delay_s is None else self.max_delay_s

    def _begin(self, *, is_savepoint: bool, lasts_s: float) -> None:
        self.made.append(Checkpoint(len(self.made) + 1, self._now_s, is_savepoint, lasts_s))

    def _end(self, one: Checkpoint, status: str) -> None:
        one.status, one.ended_s = status, self._now_s
        has_slots = self._asked_s is not None and self._now_s - self._asked_s >= self.slots_s
        if status == "COMPLETED" and has_slots:
            self._restart()

    def _restart(self) -> None:
        for one in self._in_progress:
            self.broken_savepoints += one.is_savepoint
            one.status, one.ended_s = "FAILED", self._now_s
        good = [one.ended_s for one in self.made if one.status == "COMPLETED" and not one.is_savepoint]
        self.replays_s.append(self._now_s - good[-1] if good and good[-1] is not None else float("inf"))
        self.state, self._asked_s = "RESTARTING", None
        self._back_at_s = self._now_s + self.downtime_s

    def _come_back(self) -> None:
        self.state, self._ran_since_s, self.running_ms = "RUNNING", self._now_s, round(1000 * self._now_s)
        self.parallelism = dict(self.requested or {})
        self._restored_s = self._now_s
        self._due_s = self._now_s + (self.interval_s or 0.0)
