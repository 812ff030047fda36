"""Dhalion's cycle for one job: symptom, diagnosis, resolution; a pure function of what was measured.

Source: Floratou et al., "Dhalion: self-regulating stream processing in Heron", VLDB 2017, as the papers that compare
themselves with it run it: the factors follow their published reimplementation in github.com/delftdata/espa-autoscaling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lab.policies.dhalion.dhalion_options import DhalionOptions, ScalingAmount, Symptom

# A factor above 10 would follow from one window of almost full backpressure.
MAX_BACKPRESSURED = 0.9
# Below this a product is taken to be the integer: floating point would add an instance.
_CEIL_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class OperatorMeans:
    """One operator, sources apart, in the time since the last action.

    Attributes:
        instances: running.
        limit: most instances.
        busy: share of the time it ran in which it worked; NaN when not measured.
        backpressured: share in which it was in backpressure.
        backpressured_above: the largest such share of the operators that feed it.
        short: share of the records sent to it that it cannot process; 0 if it keeps up.
    """

    instances: int
    limit: int
    busy: float
    backpressured: float
    backpressured_above: float
    short: float


@dataclass(frozen=True, slots=True)
class ScalingAction:
    """An action: one operator gets another number of instances."""

    operator: str
    instances: int
    cause: str


def resolve(options: DhalionOptions, readings: Mapping[str, OperatorMeans]) -> ScalingAction | None:
    """Return what Dhalion does now; None when the job is healthy or nothing can be done.

    Args:
        options: the settings.
        readings: operator -> reading, in topological order.
    """
    slow = _bottleneck(options, readings)
    if slow is not None:
        name, share = slow
        now = readings[name]
        wanted = (
            now.instances + 1
            if options.change is ScalingAmount.ONE
            else scale_up(now.instances, share, options.headroom)
        )
        wanted = min(wanted, now.limit, now.instances + _remaining_budget(options, readings))
        return ScalingAction(name, wanted, f"it holds up {share:.0%} of its input") if wanted > now.instances else None
    idle = {
        name: one.busy for name, one in readings.items() if one.busy < options.idle_utilisation and one.instances > 1
    }
    if not idle or any(_has_symptom(options, one) for one in readings.values()):
        return None
    name = min(idle, key=lambda each: idle[each])
    current = readings[name].instances
    wanted = current - 1 if options.change is ScalingAmount.ONE else max(1, math.floor(options.shrink * current))
    return ScalingAction(name, wanted, f"it works {idle[name]:.0%} of the time")


def scale_up(instances: int, backpressured: float, headroom: float = 0.0) -> int:
    """Return ceil(p (1 + bp / (1 - bp)) (1 + headroom)), at least one instance more; bp is at most 0.9."""
    share = min(max(backpressured, 0.0), MAX_BACKPRESSURED)
    return max(instances + 1, math.ceil(instances * (1.0 + share / (1.0 - share)) * (1.0 + headroom) - _CEIL_SLACK))


def _has_symptom(options: DhalionOptions, one: OperatorMeans) -> bool:
    if options.symptom is Symptom.PENDING:
        return one.short > 0
    return one.backpressured_above >= options.backpressured_min


def _bottleneck(options: DhalionOptions, readings: Mapping[str, OperatorMeans]) -> tuple[str, float] | None:
    """Return the first operator that causes the symptom and the share that it holds up."""
    for name, one in readings.items():
        if not _has_symptom(options, one):
            continue
        if options.symptom is Symptom.PENDING:
            return name, one.short
        if one.backpressured < options.backpressured_min:  # else the cause is further down
            return name, one.backpressured_above
    return None


def _remaining_budget(options: DhalionOptions, readings: Mapping[str, OperatorMeans]) -> int:
    """Return the instances that the budget leaves."""
    used = sum(one.instances for one in readings.values())
    return max(options.budget - used, 0) if options.budget is not None else max(one.limit for one in readings.values())
