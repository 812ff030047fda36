"""From samples to capacity curves, and how uncertain a curve is beyond the observed parallelisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints
from models.capacity.capacity_samples import Samples
from models.capacity.fit import fit
from models.capacity.gp import predict

# How far a capacity is off when it is scaled linearly by a factor e, before the fleet has shown it: worth one unit of
# squared log distance, that is one operator observed at p and at 2.7 p.
SCALING_ERROR_PRIOR = 0.3
SCALING_ERROR_PRIOR_WEIGHT = 1.0


@dataclass(frozen=True, slots=True)
class Curves:
    """Fitted capacities of B operators on the grid 1..P, without the widening beyond the observed range.

    Attributes:
        mean_per_s, sd_per_s: (B, P) records/s.
        slope_per_s: (B,) of the linear mean, records/s per unit of parallelism.
        length_scale, signal_ratio: (B,) hyperparameters; NaN for an operator observed at one parallelism only.
        noise_share: (B,) standard deviation of one sample as a share of capacity.
        at_bound: (B,) whether noise and residual could not be distinguished.
    """

    mean_per_s: Floats
    sd_per_s: Floats
    slope_per_s: Floats
    length_scale: Floats
    signal_ratio: Floats
    noise_share: Floats
    at_bound: npt.NDArray[np.bool_]


def fit_curves(samples: Samples, largest: Floats, top: int, start: Floats | None = None) -> Curves:
    """Fit a batch of operators and evaluate their curves.

    Args:
        samples: of B operators.
        largest: (B,) largest parallelism seen in the operator's job.
        top: P, the largest parallelism of the grid.
        start: (B,) length scales of an earlier fit, NaN where there is none.
    """
    result = fit(samples, largest, start)
    mean, sd = predict(
        samples,
        result.spectrum,
        np.arange(1.0, top + 1),
        ratio=result.ratio,
        slope=result.slope,
        noise_variance=result.noise_variance,
        slope_precision=result.slope_precision,
    )
    line_only = samples.points < 2
    return Curves(
        mean_per_s=np.maximum(mean, 0.0),
        sd_per_s=sd,
        slope_per_s=result.slope * samples.scale_per_s,
        length_scale=np.where(line_only, np.nan, result.spectrum.length_scale),
        signal_ratio=np.where(line_only, np.nan, result.ratio),
        noise_share=np.sqrt(result.noise_variance),
        at_bound=result.at_bound,
    )


def scaling_error(owner: Ints, observed: Ints, observed_per_s: Floats, noise_share: Floats) -> float:
    """Learn from the fleet how far linear scaling is off per unit of log distance in parallelism.

    Each operator's highest parallelism is an experiment: the capacity there against the capacity at about
    half of it, scaled linearly; what noise explains is subtracted.

    Args:
        owner: (points,) operator of each observed point, ascending.
        observed: (points,) parallelism, ascending within an operator.
        observed_per_s: (points,) mean capacity there.
        noise_share: (points,) standard deviation of that mean as a share of it.

    Returns:
        Root of the mean squared relative error per squared log distance, shrunk to the prior.
    """
    base, top = _scaling_pairs(owner, observed)
    distance = np.log(observed[top] / observed[base])
    error = np.log(observed_per_s[top] / observed_per_s[base]) - distance
    noise = noise_share[top] ** 2 + noise_share[base] ** 2
    squares = max(float(np.sum(error**2 - noise)), 0.0)
    prior = SCALING_ERROR_PRIOR_WEIGHT * SCALING_ERROR_PRIOR**2
    return float(np.sqrt((squares + prior) / (float(np.sum(distance**2)) + SCALING_ERROR_PRIOR_WEIGHT)))


def _scaling_pairs(owner: Ints, observed: Ints) -> tuple[Ints, Ints]:
    """Return (base, top): points of each operator with several, top its highest and base nearest to half of that."""
    last = np.append(owner[1:] != owner[:-1], [True][: len(owner)])
    tops = np.flatnonzero(last)
    top_of_point = tops[np.cumsum(last) - last]
    away = np.abs(np.log(2.0 * observed / observed[top_of_point]))
    away[tops] = np.inf
    order = np.lexsort((away, owner))
    nearest = order[np.append([True][: len(owner)], np.diff(owner[order]) != 0)]
    several = np.isfinite(away[nearest])
    return nearest[several], tops[several]


def widen(
    mean_per_s: Floats, sd_per_s: Floats, parallelism: Floats, *, lowest: Floats, highest: Floats, error: float
) -> Floats:
    """Return the standard deviation with what linear extrapolation may be off beyond the observed range.

    Args:
        mean_per_s: (...) expected capacity at points of curves, records/s.
        sd_per_s: (...) its standard deviation without extrapolation.
        parallelism: (...) of the points.
        lowest: (...) smallest parallelism that was seen of the curve.
        highest: (...) largest.
        error: of :func:`scaling_error`.

    Returns:
        (...) records/s; unchanged between lowest and highest, growing with the distance outside.
    """
    outside = np.log(np.maximum(parallelism / highest, lowest / parallelism))
    extra = error * mean_per_s * np.maximum(outside, 0.0)
    return np.asarray(np.hypot(sd_per_s, extra), float)
