"""A planned step, and how long Flink waits before it changes a job."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.slots import count_paid
from include.settings.planner import Timing
from models.arrays import Ints
from models.bundle.job_models import RecoveryModel
from models.scheduling.expectation import Expectation
from models.scheduling.slot_counts import count_slots_of_rows


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One configuration and when it begins; times in epoch seconds.

    Attributes:
        apply_at_s: when to send it.
        effective_at_s: when it is in effect, after what it waits for and its downtime.
        valid_until_s: when the next configuration is due, or the horizon ends: after that it must not be sent.
        parallelism_from, parallelism_to: (O,) before and after; equal for a job that is held as it is.
        begin, end: the bins that it covers.
        expected: what to expect during them.
        groups: (O,) slot-sharing group of each operator; none: all are in one.
        taskmanager_slots: slots of a TaskManager, of which whole ones are paid.
    """

    apply_at_s: int
    effective_at_s: int
    valid_until_s: int
    parallelism_from: Ints
    parallelism_to: Ints
    begin: int
    end: int
    expected: Expectation
    groups: tuple[str, ...] = ()
    taskmanager_slots: int = 1

    @property
    def is_hold(self) -> bool:
        """Whether nothing changes."""
        return bool((self.parallelism_from == self.parallelism_to).all())

    @property
    def slots_from(self) -> int:
        """Slots before."""
        return int(count_slots_of_rows(self.parallelism_from, self.groups))

    @property
    def slots(self) -> int:
        """Slots after."""
        return int(count_slots_of_rows(self.parallelism_to, self.groups))

    @property
    def lead_time_s(self) -> int:
        """Time between sending it and its being in effect."""
        return self.effective_at_s - self.apply_at_s

    @property
    def slot_hours_saved(self) -> float:
        """Against staying as it was while the step is in effect; negative when slots are added."""
        before, after = (count_paid(one, self.taskmanager_slots) for one in (self.slots_from, self.slots))
        return (before - after) * (self.valid_until_s - self.effective_at_s) / 3600


def expect_checkpoint_s(recovery: RecoveryModel, timing: Timing) -> float:
    """Return for how long at most Flink waits for a checkpoint to begin before it changes a job, s."""
    # a stop finds a checkpoint of half an interval's age
    return 2 * recovery.checkpoint_interval_s if timing.awaits_checkpoint else 0.0
