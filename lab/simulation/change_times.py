"""How long Flink takes to carry out a change of parallelism: one model for the engine, the simulator, the REST double.

    asked --(slots_wait_s, of a rise)--> slots are there --> a checkpoint is completed --(stop)--> tasks restore --> run

Until its stop a job runs as before.  A checkpoint that is completed after the slots have come begins the stop
(FLIP-461), whenever it was triggered; what was processed since then is processed again.  A barrier takes as long as
what waits in the buffers before it is old: a full job is the slowest to change.

Measured on a real Flink 2.1.3 with its defaults (metrics fetched every 10 s, adaptive scheduler, checkpoints every 60
to 180 s; three TaskManagers of 8 slots, 28 November 2026): from a request to the new parallelism 57 s (interval 60 s),
133 s (120 s), 78 and 85 s; to all tasks running 113 to 337 s, on an overloaded machine.  Checkpoints of an overloaded
job took 20, 41, 52, 66, 72 s as its buffers filled, and 139 and 174 s of a join.  Stops took 2 to 20 s, and tasks were
INITIALIZING for 20 s.  Of a source of 4 subtasks before 2 that take 500/s, 26,000 records were in the buffers before
it was held back, 180 s after an overload of 129% began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from include.domain.slots import count_paid

FETCH_S = 10.0
"""Between two fetches of metrics, Flink's default: what a poll shows is up to so old."""
STOP_S = (2.0, 20.0)
"""Least and most from the stop of a job until its tasks are deployed anew."""
RESTORE_S = 20.0
"""For how long tasks are INITIALIZING then, of a small state."""


@dataclass(frozen=True, slots=True)
class ChangeDelays:
    """What a change waits for.

    Attributes:
        slots_wait_s: from a request until slots are there that are missing: a new TaskManager, a node, an image.
        taskmanager_slots: a rise within the TaskManagers that a job has waits for no slots.
        waits_for_checkpoint: whether a stop begins with a completed checkpoint; else as soon as slots are there.
        checkpoint_interval_s, checkpoint_duration_s: from the beginning of a run to its first checkpoint and on to the
            next; how long one takes whose barrier waits for nothing.
    """

    slots_wait_s: float = 0.0
    taskmanager_slots: int = 1
    waits_for_checkpoint: bool = True
    checkpoint_interval_s: float = 60.0
    checkpoint_duration_s: float = 5.0

    @property
    def is_at_once(self) -> bool:
        """Whether a change waits for nothing."""
        return not self.waits_for_checkpoint and self.slots_wait_s == 0

    @property
    def mean_wait_s(self) -> float:
        """Mean time from a request for missing slots to the stop."""
        wait_s = self.checkpoint_interval_s / 2 + self.checkpoint_duration_s if self.waits_for_checkpoint else 0.0
        return self.slots_wait_s + wait_s

    @property
    def oldest_checkpoint_s(self) -> float:
        """How old the checkpoint that a failure finds may be, where no barrier waits."""
        return self.checkpoint_interval_s + self.checkpoint_duration_s

    def count_paid(self, slots: int) -> int:
        """Return the slots of the TaskManagers that hold so many."""
        return count_paid(slots, self.taskmanager_slots)

    def find_ready_s(self, asked_s: float, slots: int, running: int) -> float:
        """Return when the slots are there that a request asks for."""
        return asked_s + (self.slots_wait_s if self.count_paid(slots) > self.count_paid(running) else 0.0)

    def find_stop_s(self, ready_s: float, running_since_s: float, barrier_s: float = 0.0) -> float:
        """Return when a running job stops for a change: with the first checkpoint that is completed from then on.

        Args:
            ready_s: when its slots are there.
            running_since_s: since when the job runs.
            barrier_s: how old what waits in its buffers is.
        """
        if not self.waits_for_checkpoint:
            return ready_s
        took_s = self.checkpoint_duration_s + barrier_s
        number = math.ceil((ready_s - running_since_s - took_s) / self.checkpoint_interval_s - 1e-9)
        return running_since_s + max(number, 1) * self.checkpoint_interval_s + took_s
