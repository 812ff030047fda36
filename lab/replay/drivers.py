"""Who decides for a candidate policy in a replay: one protocol for hosted policies, schedules and rivals.

A driver is asked at every tick for every row that it stands for, and is as pure as a policy: what it keeps is in its
memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np

from lab.replay.tick_snapshot import TickSnapshot
from models.arrays import Ints

MemoryT = TypeVar("MemoryT")


class PolicyDriver(Protocol[MemoryT]):
    """Decides for one candidate policy."""

    def first_memory(self) -> MemoryT:
        """Return the memory before the first tick."""
        ...

    def tick(self, snapshot: TickSnapshot, memory: MemoryT) -> tuple[Mapping[str, int] | None, MemoryT]:
        """Return the parallelism wanted now, None for no change, and the memory for the next tick."""
        ...


class PollingDriver(Protocol):
    """A driver that is asked between two ticks as well, at every poll."""

    def look(self, snapshot: TickSnapshot, memory: Any) -> Mapping[str, int] | None:
        """Return the parallelism wanted now, None for no change; its memory stays as it is."""
        ...


def looks(driver: object) -> TypeGuard[PollingDriver]:
    """Whether a driver is asked between two ticks."""
    return hasattr(driver, "look")


@dataclass(frozen=True, slots=True)
class ScheduleDriver:
    """Follows a schedule that was computed beforehand.

    Attributes:
        times_s: (n,) epoch seconds, ascending.
        operators: (O,) names.
        parallelism: (n, O) from each time on.
        rises_ahead_s: how much sooner rises are asked for, since they take their time.
    """

    times_s: Ints
    operators: tuple[str, ...]
    parallelism: Ints
    rises_ahead_s: float = 0.0

    def first_memory(self) -> None:
        """Return no memory."""

    def tick(self, snapshot: TickSnapshot, memory: None) -> tuple[Mapping[str, int] | None, None]:
        """Return the configuration of this time."""
        span_s = (snapshot.now_s, snapshot.now_s + self.rises_ahead_s)
        at, ahead = np.searchsorted(self.times_s, span_s, side="right") - 1
        if at < 0:
            return None, memory
        most = max(self.parallelism[at : ahead + 1], key=lambda counts: int(counts.max()))
        return dict(zip(self.operators, most.tolist(), strict=True)), memory
