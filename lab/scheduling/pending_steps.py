"""The steps of a schedule as they are kept until they are sent."""

from __future__ import annotations

from models.policies.evaluation.pending_steps import PendingStep
from models.policies.protocol import Schedule
from models.scheduling.demand import LEVELS, SourceForecast

_Q95 = LEVELS.index(0.95)
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
