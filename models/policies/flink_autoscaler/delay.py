"""Rule 11: a scale-down waits, then takes the highest parallelism recommended over the last interval."""

from __future__ import annotations

from models.policies.flink_autoscaler.autoscaler_memory import DelayedScaleDown, Recommendation


def recommend(delayed: DelayedScaleDown | None, recommendation: Recommendation) -> DelayedScaleDown:
    """Return the waiting scale-down with one more recommendation.

    Earlier ones that are not higher are dropped: they can no longer be the maximum of a window.
    """
    if delayed is None:
        return DelayedScaleDown(recommendation.at_s, (recommendation,))
    higher = tuple(one for one in delayed.recommended if one.parallelism > recommendation.parallelism)
    return DelayedScaleDown(delayed.first_s, (*higher, recommendation))


def due(delayed: DelayedScaleDown, now_s: float, interval_s: float) -> Recommendation | None:
    """Return the highest recommendation since ``now - interval``, None while the scale-down has not waited so long."""
    since_s = now_s - interval_s
    if since_s < delayed.first_s:
        return None
    return next((one for one in delayed.recommended if one.at_s >= since_s), None)
