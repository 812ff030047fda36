"""The plan phase: the fewest workers that hold the forecast and recover within the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.policies.daedalus.capacity_regression import CapacityLine, estimate_capacity
from lab.policies.daedalus.daedalus_options import DaedalusOptions
from lab.policies.daedalus.recovery import predict_recovery_s
from models.bundle.job_models import RecoveryModel


@dataclass(frozen=True, slots=True)
class ScaleOutOutlook:
    """What a scale-out is chosen for.

    Attributes:
        load_per_s: now and of each window ahead, records/s.
        window_s: length of a window.
        waiting: records of the backlog.
    """

    load_per_s: Sequence[float]
    window_s: int
    waiting: float


def choose_workers(
    lines: Sequence[CapacityLine],
    outlook: ScaleOutOutlook,
    *,
    running: int,
    slots_max: int,
    recovery: RecoveryModel,
    options: DaedalusOptions,
) -> int:
    """Return the fewest workers whose capacity the load does not reach, and that recover in time; all if none do.

    The scale-out that runs has no downtime: only its backlog counts.

    Args:
        lines: of the scale-outs that ran, one at least.
        outlook: load and backlog.
        running: workers.
        slots_max: most workers.
        recovery: downtime of a change, and age of the checkpoint that it starts from.
        options: the settings.
    """
    for workers in range(1, slots_max + 1):
        capacity = estimate_capacity(lines, workers, options.desired_use)
        if not capacity > max(outlook.load_per_s):
            continue
        changes = workers != running
        recovery_s = predict_recovery_s(
            outlook.load_per_s,
            outlook.window_s,
            capacity_per_s=capacity,
            downtime_s=recovery.downtime_s("rescale") if changes else 0.0,
            waiting=outlook.waiting,
            repeated_s=recovery.checkpoint_interval_s if changes else 0.0,
        )
        if recovery_s <= options.recovery_max_s:
            return workers
    return slots_max
