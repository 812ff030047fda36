"""What Flink says of a job right before a request: its checkpoints, memory and failures, and how long it will wait.

It is asked for only where something is about to be sent. What Flink does not tell is None, and is no permission.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a job; times by Flink's clock.

    Attributes:
        interval_s: between two of them, s; None where they are off.
        completed_at_s: when what a restart would go back to was completed, or the job last went back to it; epoch
            seconds. None where there is no such checkpoint, so that a restart would begin without state.
        is_failing: whether one has failed since the last that was completed.
        savepoints: how many are in progress; None where Flink lists fewer than it counts.
        in_progress: checkpoints that are no savepoints, in progress.
        state_bytes: of the last completed one; None without one.
        last_id: of the last completed one; 0 without one.
        timeout_s: after which Flink gives one up.
        savepoint_failed_at_s: when the last savepoint failed of those that Flink remembers; None without one.
    """

    interval_s: float | None
    completed_at_s: float | None
    is_failing: bool = False
    savepoints: int | None = 0
    in_progress: int = 0
    state_bytes: int | None = None
    last_id: int = 0
    timeout_s: float = 600.0
    savepoint_failed_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """The TaskManagers' memory, of the one that has least left.

    Attributes:
        heap_share: heap in use of its maximum, 0..1.
        gc_share: share of time spent in garbage collection, 0..1; None where Flink does not tell.
    """

    heap_share: float
    gc_share: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a job.

    Attributes:
        at_s: epoch seconds, by Flink's clock.
        cause: root exception as one line, as a person reads it.
        kind: the same without what differs from one occurrence to the next.
        lacks_slots: whether TaskManagers or slots were lost, so that the job itself is not at fault.
    """

    at_s: float
    cause: str
    kind: str
    lacks_slots: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """What Flink says of a job right before a request.

    Attributes:
        checkpoints: None where it does not tell; ``unknown`` says why.
        memory: None where it does not tell, or was not asked.
        failures: that it remembers; None where it does not tell.
        now_s: Flink's time, epoch seconds; None where it does not tell.
        restarts: whether what is sent restarts the job; the least parallelism of an autoscaler does not by itself.
        wait_s: longest that Flink waits before it begins with the rescale.
        wait_detail: the parts of it, for a person.
        checkpoint_wait_s: so long it is sure not to begin while a savepoint is in progress: the part of it for the next
            checkpoint, nothing where several are taken at once.
        waits_for_checkpoint: whether a rescale waits for the next checkpoint (Flink 1.20 and later).
        tells_gc: whether this version of Flink tells the time of garbage collection.
        asked_ago_s: since the controller asked for a checkpoint of which nothing has come yet; None where it did not.
        is_fresh: whether the checkpoint that the controller asked for was completed, or could not be asked for.
        other_autoscaler: see :class:`models.control.state.ObservedJob`, asked anew.
        autoscaler_unknown: why nobody knows; empty when it is known.
        unknown: what Flink did not tell, and why.
    """

    checkpoints: Checkpoints | None = None
    memory: MemoryUsage | None = None
    failures: tuple[Failure, ...] | None = None
    now_s: float | None = None
    restarts: bool = True
    wait_s: float = 0.0
    wait_detail: str = ""
    checkpoint_wait_s: float = 0.0
    waits_for_checkpoint: bool = True
    tells_gc: bool = True
    asked_ago_s: float | None = None
    is_fresh: bool = False
    other_autoscaler: str | None = None
    autoscaler_unknown: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Guards:
    """Under which readiness something is sent; see ``[apply]`` of the settings.

    Attributes:
        checkpoint_max_age_s: oldest checkpoint; None: three times the job's interval, at least 180 s.
        is_age_of_interval_too: whether that of the interval bounds it as well, as in one of two settings that count.
        triggers_checkpoint: whether a checkpoint is asked for with a request.
        heap_share_max, gc_share_max: of a TaskManager, 0..1, above which no slots are given back; 1 asks nothing.
        state_per_slot_max_bytes: largest state that a slot may hold after a fall.
    """

    checkpoint_max_age_s: float | None = None
    triggers_checkpoint: bool = True
    heap_share_max: float = 0.9
    gc_share_max: float = 0.3
    state_per_slot_max_bytes: float = 32.0 * 2**30
    is_age_of_interval_too: bool = False

    def max_age_s(self, interval_s: float) -> float:
        """Return the oldest that a checkpoint may be before a request, s."""
        of_interval = max(3.0 * interval_s, 180.0)
        if self.checkpoint_max_age_s is None:
            return of_interval
        return min(of_interval, self.checkpoint_max_age_s) if self.is_age_of_interval_too else self.checkpoint_max_age_s


def combine_guards(guards: Iterable[Guards]) -> Guards:
    """Return the guards that satisfy all of them, one at least: of each the strictest."""
    every = list(guards)
    ages = [one.checkpoint_max_age_s for one in every]
    given = [age for age in ages if age is not None]
    return Guards(
        checkpoint_max_age_s=min(given, default=None),
        triggers_checkpoint=all(one.triggers_checkpoint for one in every),
        heap_share_max=min(one.heap_share_max for one in every),
        gc_share_max=min(one.gc_share_max for one in every),
        state_per_slot_max_bytes=min(one.state_per_slot_max_bytes for one in every),
        is_age_of_interval_too=bool(given) and (None in ages or any(one.is_age_of_interval_too for one in every)),
    )
