"""Pending steps: the steps of a plan as they are kept until they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.policies.protocol import Schedule
from models.scheduling.demand import LEVELS, SourceForecast

_Q95 = LEVELS.index(0.95)


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A step that is to be sent.

    Attributes:
        apply_at_s, valid_until_s: epoch seconds.
        parallelism: operator -> parallelism.
        load_most_per_s: upper end of the band that it was planned for, all sources together: q95 of its first bins.
        reason: of the plan.
        load_before_most_per_s: the same of the bin before it is in effect; 0 when the forecast does not show it.
    """

    apply_at_s: int
    valid_until_s: int
    parallelism: Mapping[str, int]
    load_most_per_s: float
    reason: str
    load_before_most_per_s: float = 0.0


BAND_S = 3600
"""A step's band is that of its first hour: later hours are planned again before they come."""


def list_pending_steps(schedule: Schedule, forecast: SourceForecast) -> tuple[PendingStep, ...]:
    """Return the steps of a schedule that change something, by time."""
    load = sum(values[_Q95] for values in forecast.quantiles.values())
    result = []
    for decision in schedule.decisions:
        step = decision.step
        if step.is_hold:
            continue
        first = max((step.effective_at_s - forecast.start_s) // forecast.bin_s, 0)
        last = max(first + BAND_S // forecast.bin_s, first + 1)
        band = load[first:last]
        parallelism = dict(zip(schedule.operators, map(int, step.parallelism_to), strict=True))
        most = float(band.max()) if len(band) else float("inf")
        before = float(load[first - 1]) if 0 < first <= len(load) else 0.0
        result.append(PendingStep(step.apply_at_s, step.valid_until_s, parallelism, most, decision.reason, before))
    return tuple(sorted(result, key=lambda due: due.apply_at_s))


def latest_due(steps: tuple[PendingStep, ...], now_s: int) -> tuple[PendingStep | None, tuple[PendingStep, ...]]:
    """Return the step that was due last, if one was, and those that lie ahead."""
    due_steps = [step for step in steps if step.apply_at_s <= now_s]
    return (due_steps[-1] if due_steps else None), steps[len(due_steps) :]
