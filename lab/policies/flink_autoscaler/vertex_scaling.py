"""Rules 8-11 and 13 for one vertex: from its rates to its new parallelism."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lab.policies.flink_autoscaler.alignment import INT_MAX, ParallelismLimits, align, is_aligned
from lab.policies.flink_autoscaler.autoscaler_memory import DelayedRecommendation, DelayedScaleDown, Scaling
from lab.policies.flink_autoscaler.config import AutoscalerConfig, Release
from lab.policies.flink_autoscaler.target_capacity import Bounds, RequiredRates, scale_factor


@dataclass(frozen=True, slots=True)
class VertexState:
    """A vertex as evaluated.

    Attributes:
        parallelism: running.
        max_parallelism: its number of key groups.
        demand: TDR and C.
        true_processing_per_s: TPR.
        bounds: inside which it is left alone.
        input_ship: ship strategies of its inputs.
        source_partitions: of the topic it reads, 0 when not known.
    """

    parallelism: int
    max_parallelism: int
    demand: RequiredRates
    true_processing_per_s: float
    bounds: Bounds
    input_ship: Collection[str] = ()
    source_partitions: int = 0


@dataclass(frozen=True, slots=True)
class VertexChange:
    """The new parallelism of a vertex.

    Attributes:
        current, parallelism: before and after; equal when nothing changes.
        outside_bounds: whether its rate is outside its bounds; None when nothing changes.
        expected_per_s: processing rate expected afterwards; None when nothing changes.
    """

    current: int
    parallelism: int
    outside_bounds: bool | None = None
    expected_per_s: float | None = None

    @property
    def changes(self) -> bool:
        """Whether the parallelism changes."""
        return self.parallelism != self.current


def limits_of(config: AutoscalerConfig, parallelism: int, max_parallelism: int) -> ParallelismLimits:
    """Rule 9: configured limits; a parallelism that already lies outside is never moved further outside."""
    return ParallelismLimits(
        lower=min(parallelism, config.vertex_min_parallelism),
        upper=max(parallelism, config.vertex_max_parallelism),
        max_parallelism=max_parallelism,
    )


def scale_parallelism(
    config: AutoscalerConfig,
    parallelism: int,
    factor: float,
    limits: ParallelismLimits,
    *,
    input_ship: Collection[str] = (),
    source_partitions: int = 0,
) -> int:
    """Rules 9 and 10: p' = ceil(f p) within the limits, aligned; unchanged when the factor is NaN."""
    if math.isnan(factor):
        return parallelism
    product = factor * parallelism
    target = limits.clamp(INT_MAX if product >= INT_MAX else math.ceil(product))
    if target == parallelism or not is_aligned(input_ship, source_partitions):
        return target
    return align(config.alignment, parallelism, target, limits, source_partitions)


def is_ineffective(config: AutoscalerConfig, latest: Scaling | None, parallelism: int, rate_per_s: float) -> bool:
    """Rule 13: whether the vertex's last scale-up increased its rate by too little of what was expected.

    Args:
        config: the settings.
        latest: the last scaling.
        parallelism: running; only a scaling that led here counts.
        rate_per_s: TPR now.
    """
    if latest is None or latest.new_parallelism != parallelism or latest.expected_per_s is None:
        return False
    expected = latest.expected_per_s - latest.true_processing_per_s
    gained = rate_per_s - latest.true_processing_per_s
    if parallelism <= latest.parallelism or math.isnan(expected) or expected == 0:
        return False
    return not gained / expected >= config.scaling_effectiveness_threshold


def scale_vertex(
    config: AutoscalerConfig,
    state: VertexState,
    *,
    restart_s: float,
    now_s: float,
    history: Sequence[Scaling] = (),
    delayed: DelayedScaleDown | None = None,
) -> tuple[VertexChange, DelayedScaleDown | None]:
    """Return the change of a vertex and its waiting scale-down, if any.

    Scale-up is immediate unless the last one was ineffective; scale-down waits.
    """
    current = state.parallelism
    unchanged = VertexChange(current, current)
    observed = [scaling.observation for scaling in history]
    rate = state.true_processing_per_s
    factor = scale_factor(config, state.demand, rate, restart_s=restart_s, history=observed)
    if math.isnan(factor):
        return unchanged, delayed
    limits = limits_of(config, current, state.max_parallelism)
    ship, partitions = state.input_ship, state.source_partitions
    wanted = scale_parallelism(config, current, factor, limits, input_ship=ship, source_partitions=partitions)
    outside = state.bounds.excludes(rate)
    if wanted == current:
        return unchanged, None
    if wanted > current:
        latest = history[-1] if history else None
        blocked = config.scaling_effectiveness_detection_enabled and is_ineffective(config, latest, current, rate)
        return (unchanged if blocked else _change(current, wanted, outside, rate)), None
    if config.scale_down_interval_s <= 0:
        return _change(current, wanted, outside, rate), delayed
    return _delay_scale_down(config, current, rate, DelayedRecommendation(now_s, wanted, outside), delayed)


def _delay_scale_down(
    config: AutoscalerConfig,
    current: int,
    rate_per_s: float,
    latest: DelayedRecommendation,
    delayed: DelayedScaleDown | None,
) -> tuple[VertexChange, DelayedScaleDown]:
    """Rule 11: return the change of a vertex that is to be scaled down, and its scale-downs that wait."""
    interval_s = config.scale_down_interval_s
    if config.release is Release.V1_10:
        begun = delayed or DelayedScaleDown(latest.at_s)
        # Until it is due it changes nothing by itself, but goes along with another vertex.
        outside = latest.outside_bounds and latest.at_s >= begun.first_s + interval_s
        return _change(current, latest.parallelism, outside, rate_per_s), begun
    waiting = add_recommendation(delayed, latest)
    recommended = due_recommendation(waiting, latest.at_s, interval_s)
    if recommended is None:
        return VertexChange(current, current), waiting
    return _change(current, recommended.parallelism, recommended.outside_bounds, rate_per_s), waiting


def add_recommendation(delayed: DelayedScaleDown | None, recommendation: DelayedRecommendation) -> DelayedScaleDown:
    """Rule 11: return the waiting scale-down with one more recommendation.

    Earlier ones that are not higher are dropped: they can no longer be the maximum of a window.
    """
    if delayed is None:
        return DelayedScaleDown(recommendation.at_s, (recommendation,))
    higher = tuple(one for one in delayed.recommended if one.parallelism > recommendation.parallelism)
    return DelayedScaleDown(delayed.first_s, (*higher, recommendation))


def due_recommendation(delayed: DelayedScaleDown, now_s: float, interval_s: float) -> DelayedRecommendation | None:
    """Rule 11: return the highest recommendation of the last interval, None until the scale-down has waited so long."""
    since_s = now_s - interval_s
    if since_s < delayed.first_s:
        return None
    return next((one for one in delayed.recommended if one.at_s >= since_s), None)


def _change(current: int, parallelism: int, outside: bool, rate_per_s: float) -> VertexChange:
    return VertexChange(current, parallelism, outside, rate_per_s / current * parallelism)
