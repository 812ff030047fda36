"""Rules 6-8: the capacity that a vertex needs, the bounds inside which it is left alone, and its scale factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from lab.policies.flink_autoscaler.config import AutoscalerConfig


@dataclass(frozen=True, slots=True)
class RequiredRates:
    """Required rates, records/s.

    Attributes:
        target_per_s: arriving, TDR.
        catch_up_per_s: on top of it, to clear the lag.
    """

    target_per_s: float
    catch_up_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """True processing rates between which a vertex is left alone, records/s."""

    scale_up_below_per_s: float
    scale_down_above_per_s: float

    def excludes(self, true_processing_per_s: float) -> bool:
        """Return whether a rate asks for a scaling; NaN never does."""
        return true_processing_per_s < self.scale_up_below_per_s or true_processing_per_s > self.scale_down_above_per_s


@dataclass(frozen=True, slots=True)
class Observation:
    """A true processing rate observed at a parallelism before it was changed."""

    parallelism: int
    true_processing_per_s: float


def target_capacity(
    config: AutoscalerConfig, demand: RequiredRates, utilization: float, *, restart_s: float | None
) -> float:
    """Rule 6: the processing rate that clears the lag, makes up for a restart and leaves the vertex utilised so much.

    cap(u) = round(C + TDR * restart / catch-up + TDR / u), the restart's term only with a catch-up duration.

    Args:
        config: the settings.
        demand: TDR and C.
        utilization: u, cut to [0, 1].
        restart_s: how long a restart takes; None leaves its term out.

    Returns:
        records/s; NaN when the demand is not known, infinite at utilisation 0.
    """
    if math.isnan(demand.catch_up_per_s) or math.isnan(demand.target_per_s):
        return math.nan
    share = min(1.0, max(0.0, utilization))
    if share == 0:
        return math.inf
    with_restart = restart_s is not None and config.catch_up_duration_s > 0
    restart = demand.target_per_s * (restart_s or 0.0) / config.catch_up_duration_s if with_restart else 0.0
    wanted = demand.catch_up_per_s + restart + demand.target_per_s / share
    return float(math.floor(wanted + 0.5)) if math.isfinite(wanted) else wanted


def bounds(config: AutoscalerConfig, demand: RequiredRates, *, restart_s: float, processing_backlog: bool) -> Bounds:
    """Rule 7: scale up below cap(u_max) without the restart's term, scale down above cap(u_min).

    While backlog is processed every utilisation up to 1 is allowed and nothing is scaled down.
    """
    low, high = (0.0, 1.0) if processing_backlog else config.utilization_bounds()
    return Bounds(
        scale_up_below_per_s=target_capacity(config, demand, high, restart_s=None),
        scale_down_above_per_s=target_capacity(config, demand, low, restart_s=restart_s),
    )


def scaling_coefficient(config: AutoscalerConfig, history: Sequence[Observation]) -> float:
    """Rule 8: alpha, how much of linear scaling past observations show; 1 when there are too few.

    alpha = sum(P R) / (beta sum(P^2)) for parallelisms P and rates R, where beta is the rate of one instance at the
    smallest parallelism, its latest observation.  Cut to [coefficient-min, 1] and rounded up to two decimals.

    Args:
        config: the settings.
        history: oldest first.
    """
    if not history or len(history) < config.observed_scalability_min_observations:
        return 1.0
    smallest = min(reversed(history), key=lambda seen: seen.parallelism)
    beta = smallest.true_processing_per_s / smallest.parallelism
    products = sum(one.parallelism * one.true_processing_per_s for one in history)
    squares = sum(one.parallelism**2 for one in history)
    alpha = products / (beta * squares) if beta > 0 else math.nan
    if not math.isfinite(alpha):
        return 1.0
    cut = max(config.observed_scalability_coefficient_min, min(1.0, alpha))
    return float(Decimal(repr(cut)).quantize(Decimal("0.01"), ROUND_CEILING))


def scale_factor(
    config: AutoscalerConfig,
    demand: RequiredRates,
    true_processing_per_s: float,
    *,
    restart_s: float,
    history: Sequence[Observation] = (),
) -> float:
    """Rules 8 and 9: f = cap(u_target) / TPR, over alpha, cut to [1 - max scale-down, 1 + max scale-up].

    Returns:
        the factor on the parallelism; NaN when the demand or the rate is not known.
    """
    wanted = target_capacity(config, demand, config.utilization_target, restart_s=restart_s)
    factor = _quotient(wanted, true_processing_per_s)
    if config.observed_scalability_enabled:
        factor /= scaling_coefficient(config, history)
    if math.isnan(factor):
        return math.nan
    return min(max(factor, 1.0 - config.scale_down_max_factor), 1.0 + config.scale_up_max_factor)


def _quotient(wanted: float, available: float) -> float:
    """Divide where 0 / 0 and inf / inf are unknown and a positive over nothing is infinite."""
    if available == 0:
        return math.inf if wanted > 0 else math.nan
    return wanted / available
