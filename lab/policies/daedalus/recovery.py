"""How long a job takes to catch up after a change of its scale-out, as the forecast has it."""

from __future__ import annotations

import math
from collections.abc import Sequence


def predict_recovery_s(
    load_per_s: Sequence[float],
    step_s: float,
    *,
    capacity_per_s: float,
    downtime_s: float,
    waiting: float,
    repeated_s: float,
) -> float:
    """Return seconds from the change until the backlog is worked off.

    During the downtime what arrives waits; then the capacity is left for the backlog beside what arrives.

    Deviation: the paper learns its downtimes from the changes that it makes; here they are the recovery model's.

    Args:
        load_per_s: forecast from now on, one value at least; the last one goes on after the end.
        step_s: between two of its values.
        capacity_per_s: of the scale-out.
        downtime_s: of the change.
        waiting: records of the backlog now.
        repeated_s: age of the checkpoint from which the job starts: that much load is processed again.

    Returns:
        infinite where the capacity does not exceed the load.
    """
    backlog, at_s = waiting + repeated_s * load_per_s[0], 0.0
    for index, load in enumerate(load_per_s):
        is_last = index == len(load_per_s) - 1
        end_s = math.inf if is_last else (index + 1) * step_s
        stopped_until_s = min(max(downtime_s, at_s), end_s)
        backlog += load * (stopped_until_s - at_s)
        at_s, spare = stopped_until_s, capacity_per_s - load
        if at_s < end_s:
            if spare > 0 and at_s + backlog / spare <= end_s:
                return at_s + backlog / spare
            if is_last:
                return math.inf
            backlog = max(backlog - spare * (end_s - at_s), 0.0)
            at_s = end_s
    return math.inf
