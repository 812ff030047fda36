"""The controller: when a job is tuned and whether a suggestion is worth a restart, Sec. 7 of ContTune."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from lab.policies.tuning_thresholds import Thresholds


class ProvisionState(StrEnum):
    """State of a job."""

    UNDER = "under-provisioned"
    OVER = "over-provisioned"
    BALANCED = "balanced"


def provision(backpressured: float, cpu_usage: float, thresholds: Thresholds) -> ProvisionState:
    """Return the state of a job.

    Backpressure without CPU stress (skew, lack of memory) is neither state: more parallelism would not help.

    Args:
        backpressured: largest backPressurePer of the job's operators, 0..1.
        cpu_usage: 0..1.
        thresholds: the settings.
    """
    held = backpressured >= thresholds.backpressure
    if held and cpu_usage > thresholds.core_max:
        return ProvisionState.UNDER
    if not held and cpu_usage < thresholds.core_min:
        return ProvisionState.OVER
    return ProvisionState.BALANCED


def is_worth_restart(current: Mapping[str, int], wanted: Mapping[str, int], decision: float) -> bool:
    """Return whether a suggestion is applied: the job's level changes by a factor of 1 + decisionThr or more.

    The level of a job is its largest parallelism, since operators share slots.  Deviation: where the level stays, the
    largest change of any operator counts; the paper's rule would leave every operator but the widest untuned.

    Args:
        current: operator -> running parallelism.
        wanted: operator -> suggested parallelism.
        decision: decisionThr.
    """
    changes = [_factor(current[name], wanted[name]) for name in wanted]
    level = _factor(max(current.values(), default=1), max({**current, **wanted}.values(), default=1))
    change = level if level > 1 else max(changes, default=1.0)
    return change > 1 and change >= 1 + decision


def _factor(before: int, after: int) -> float:
    return max(before, after) / min(before, after)
