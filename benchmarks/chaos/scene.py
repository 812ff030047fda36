"""One fault: the job that it meets, the step that is planned for it, and waiting for the moments in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from benchmarks.chaos.log_rows import LogRow
from benchmarks.chaos.outcome import NOT_TOUCHED, PASSES_TICKS, Outcome, judge
from benchmarks.chaos.plan_rows import Step
from benchmarks.chaos.world import World, Wrong
from benchmarks.waiting import NotReachedError, wait_until

_RECORDED_S = 90.0


@dataclass(slots=True)
class Scene:
    """A fault in progress.

    Attributes:
        began_s: epoch seconds.
        job: that it meets.
        parallelism: that is going to be planned.
        step: once it is planned.
        is_hit: whether the fault met a step that had not ended.
        over_at: ticks that had been made when the fault was over.
        after: what is undone when the outcome is known.
        notes: for the table.
    """

    world: World
    rng: random.Random
    job: str
    parallelism: int
    began_s: float = field(default_factory=time.time)
    step: Step | None = None
    is_hit: bool = False
    over_at: int = 0
    after: ExitStack = field(default_factory=ExitStack)
    notes: list[str] = field(default_factory=list)
    _last: tuple[int, int] = (0, 0)

    @property
    def job_id(self) -> str:
        """Flink's id of the job now."""
        return self.world.jobs.ids[self.job]

    @property
    def target(self) -> dict[str, int]:
        """What the step wants, by operator."""
        return {} if self.step is None else dict(self.step.target)

    def pause(self, least_s: float, most_s: float) -> None:
        """Let a random time pass: a fault may come at any moment."""
        time.sleep(self.rng.uniform(least_s, most_s))

    def hit(self) -> None:
        """Note that the fault happens now."""
        self.is_hit = self.is_hit or self.is_open()

    def is_open(self) -> bool:
        """Whether the step has not come to an end."""
        return self.world.log.of_job(self.job, self.began_s)[-1:] == [] or self.outcome() is None

    def wait_until_recorded(self, every_s: float = 0.02) -> None:
        """Wait until the controller has written down that it sends, or the step has come to an end without that."""

        def is_recorded() -> bool:
            rows = self.world.log.of_job(self.job, self.began_s)
            return any(row.sends and row.step_id == self._step_id for row in rows) or not self.is_open()

        wait_until(is_recorded, _RECORDED_S, f"a request for {self.job} is recorded", every_s)

    def wait_for_put(self) -> None:
        """Wait until a request for the job has come to the proxy, or the step has come to an end without one."""

        def has_come() -> bool:
            puts = self.world.proxy.puts
            return any(put.job_id == self.job_id and put.received_s >= self.began_s for put in puts)

        wait_until(lambda: has_come() or not self.is_open(), _RECORDED_S, f"a request for {self.job} is sent", 0.02)

    def outcome(self) -> Outcome | None:
        """Return how it has ended; None while it has not."""
        world = self.world
        rows = world.log.of_job(self.job, self.began_s)
        if len(rows) != self._last[0]:
            self._last = len(rows), world.ticks
        ticks = world.ticks - max(self.over_at, self._last[1])
        result = judge(rows, self._step_id, self.target, lambda: world.observe(self.job), ticks)
        return NOT_TOUCHED if result is None and self._is_past(rows, ticks) else result

    def settle(self) -> Outcome:
        """Wait for the end, now that the fault is over."""
        self.over_at = self.world.ticks
        try:
            return wait_until(self.outcome, self.world.conditions.settles_s, f"{self.job} is settled", 0.25)
        except NotReachedError:
            rows = self.world.log.of_job(self.job, self.began_s)
            return Outcome("unsettled", rows[-1].reason if rows else "no decision")

    def accuse(self, invariant: str, detail: str) -> None:
        """Note what must never happen."""
        self.world.wrongs.append(Wrong(invariant, time.time(), f"{self.job}: {detail}"))

    def _is_past(self, rows: Sequence[LogRow], ticks: int) -> bool:
        """Whether the step's validity has passed, by the controller's clock, without anything sent for it."""
        step, now_s = self.step, time.time() + self.world.ahead_s
        is_sent = any(row.sends and row.step_id == self._step_id for row in rows)
        return step is not None and now_s > step.valid_until_s and ticks >= PASSES_TICKS and not is_sent

    @property
    def _step_id(self) -> str:
        return "" if self.step is None else self.step.step_id


Inject = Callable[[Scene], AbstractContextManager[None]]
"""Prepares a fault, lets the step be planned at its ``yield``, and then does what it does."""


CONFIRMED, HELD, REFUSED = ("confirmed*",), ("held*",), ("refused*",)


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    Attributes:
        name, group: for the table.
        inject: does it.
        expected: how it may end, as ``verdict`` or ``verdict: reason`` with ``*`` for any text; several where chance
            decides. It is printed before a run.
    """

    name: str
    group: str
    inject: Inject
    expected: tuple[str, ...] = CONFIRMED

    def expects(self, outcome: Outcome) -> bool:
        """Whether the fault may end so."""
        return any(fnmatchcase(str(outcome), pattern) for pattern in self.expected)
