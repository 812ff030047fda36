"""The state of replayed jobs: between windows, and through the steps of one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lab.simulation.state import NEVER
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class PendingRescale:
    """A rescale that is not carried out yet: its (O,) target, and when its slots are there, seconds since the start."""

    target: Ints
    ready_s: float


@dataclass(slots=True)
class RowStates:
    """State of J rows.

    Attributes:
        parallelism: (J, O).
        backlog: (J, S).
        down_from, down_until: (J,) last downtime, seconds since the start.
        restored: (J, S) records processed at the last restart, from where a failure before the next checkpoint replays.
        recent: (J, R + 1, S) records processed at the ends of the last R steps, as many as a checkpoint may be old.
        requests: row -> what it waits for.
    """

    parallelism: Ints
    backlog: Floats
    down_from: Floats
    down_until: Floats
    restored: Floats
    recent: Floats
    requests: dict[int, PendingRescale] = field(default_factory=dict)

    @classmethod
    def running(cls, parallelism: Ints, rows: int, sources: int, steps: int) -> RowStates:
        """Return J rows that run with the same (O,) parallelism and have no backlog; ``steps`` is R."""
        return cls(
            parallelism=np.tile(np.asarray(parallelism, np.int64), (rows, 1)),
            backlog=np.zeros((rows, sources)),
            down_from=np.full(rows, NEVER),
            down_until=np.full(rows, NEVER),
            restored=np.zeros((rows, sources)),
            recent=np.zeros((rows, steps + 1, sources)),
        )


@dataclass(slots=True)
class StepPath:
    """What the steps of a window were for n rows.

    Attributes:
        up: (n, K) share of each step in which the row ran.
        wanted, emitted: (n, K, S) records/s.
        capacity: (n, K, O) records/s.
        backlog: (n, K + 1, S) at the ends of steps, the beginning first.
    """

    up: Floats
    wanted: Floats
    emitted: Floats
    capacity: Floats
    backlog: Floats

    @classmethod
    def allocate_arrays(cls, backlog: Floats, capacity: Floats, steps: int) -> StepPath:
        """Return a path to be filled, of rows that are up and begin with a backlog, (n, S), and a capacity, (n, O)."""
        n, sources = backlog.shape
        wanted, emitted = np.zeros((2, n, steps, sources))
        of_steps = np.repeat(capacity[:, None], steps, axis=1)
        path = cls(np.ones((n, steps)), wanted, emitted, of_steps, np.zeros((n, steps + 1, sources)))
        path.backlog[:, 0] = backlog
        return path
