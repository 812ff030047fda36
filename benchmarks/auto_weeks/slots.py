"""The slots of an elastic cluster: TaskManagers come late, are given back, are lost, and may not come at all."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

IDLE_S = 30.0  # Flink's ``resourcemanager.taskmanager-timeout``
COMES_S = (30.0, 150.0)  # a TaskManager: a node that is there already, or one that has to be started


@dataclass(slots=True)
class Slots:
    """TaskManagers of one job.

    Attributes:
        draws: how long each takes to come.
        per_manager: slots of each.
        managers: that are there.
        arrivals_s: when others come, epoch seconds.
        none_before_s: until when none comes; one that is lost is replaced no sooner.
    """

    draws: random.Random
    per_manager: int
    managers: int
    arrivals_s: list[float] = field(default_factory=list)
    none_before_s: float = 0.0
    _idle_since_s: float | None = None

    @property
    def count(self) -> int:
        """Slots that are there."""
        return self.managers * self.per_manager

    def follow(self, now_s: float, asked: int, running: int) -> None:
        """Let those come that are due, ask for those that are missing, give back those that were idle for long.

        Args:
            now_s: epoch seconds.
            asked: slots that the job is asked to take.
            running: slots that it takes.
        """
        needed = -(-asked // self.per_manager)
        due = sum(at_s <= now_s for at_s in self.arrivals_s) if now_s >= self.none_before_s else 0
        self.managers += due
        waiting = sorted(self.arrivals_s)[due : due + max(needed - self.managers, 0)]
        missing = max(needed - self.managers - len(waiting), 0)
        self.arrivals_s = waiting + [now_s + self.draws.uniform(*COMES_S) for _ in range(missing)]
        most = max(needed, -(-running // self.per_manager))
        self._idle_since_s = None if self.managers <= most else self._idle_since_s or now_s
        if self._idle_since_s is not None and now_s - self._idle_since_s >= IDLE_S:
            self.managers, self._idle_since_s = most, None

    def lose(self, until_s: float) -> None:
        """Lose a TaskManager, of which another comes no sooner than at a time."""
        self.managers, self.none_before_s = max(self.managers - 1, 0), max(self.none_before_s, until_s)
