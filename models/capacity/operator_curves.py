"""The pipeline's capacity curves: fitted in batches, with the residuals by which their intervals are calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.capacity.averaged_curves import MAX_LOG_SD, RATIOS, fit_averaged, length_scales
from models.capacity.capacity_samples import CapacitySamples
from models.capacity.interval_calibration import SupportRegion

MIN_POINTS_REMAINING: Final = 2  # a curve is tried on the hidden points when so many are left
_HIDDEN_ABOVE: Final = 0.5  # of the largest parallelism seen: as far as a doubling reaches


@dataclass(frozen=True, slots=True)
class OperatorCurves:
    """Capacities of B operators on the grid 1..P.

    Attributes:
        mean_per_s, sd_per_s: (B, P) records/s; the deviation of the capacity of a new stay at that parallelism, not
            calibrated.
        slope_per_s: (B,) records/s per instance at the largest parallelism seen.
        length_scale, signal_ratio: (B,) hyperparameters; NaN for an operator observed at one parallelism only.
        noise_share: (B,) standard deviation of one window as a share of capacity.
        at_bound: (B,) whether noise and residual could not be distinguished.
        left_out: (B, m) standardised residual of each point as predicted by a fit without it; NaN where not tried.
        left_out_place: (B, m) :class:`SupportRegion` that the point had in that fit.
    """

    mean_per_s: Floats
    sd_per_s: Floats
    slope_per_s: Floats
    length_scale: Floats
    signal_ratio: Floats
    noise_share: Floats
    at_bound: Bools
    left_out: Floats
    left_out_place: Ints


def fit_operator_curves(
    samples: CapacitySamples,
    largest: Floats,
    key_groups: Floats,
    top: int,
    *,
    shared_doubt: Floats | float = 0.0,
    leaves_out: bool = True,
) -> OperatorCurves:
    """Fit a batch of operators.

    Args:
        samples: of B operators.
        largest: (B,) largest parallelism seen in the operator's job.
        key_groups: (B,) `maxParallelism` of each, NaN where not known.
        top: P, the largest parallelism of the grid.
        shared_doubt: (B,) standard deviation of ln C that light use leaves everywhere: see
            models.capacity.busy_windows.  It is none of a curve's shape, so that no point shows it.
        leaves_out: whether to try curves on points that were hidden from them.
    """
    ratios = np.broadcast_to(RATIOS, (len(samples), len(RATIOS)))
    grid = np.arange(1, top + 1)[None]
    result = fit_averaged(samples, length_scales(largest), ratios, key_groups=key_groups, query=grid)
    line_only = samples.points < 2
    if leaves_out:
        excluded, place = leave_out(samples, result.length_scale, result.signal_ratio, key_groups)
    else:
        excluded, place = np.full(samples.count.shape, np.nan), np.zeros(samples.count.shape, np.int64)
    last = samples.points - 1
    rows = np.arange(len(samples))
    shared = np.broadcast_to(np.asarray(shared_doubt, float), rows.shape)
    log_sd = np.minimum(np.hypot(result.log_sd, shared[:, None]), MAX_LOG_SD)
    return OperatorCurves(
        mean_per_s=result.median_per_s,
        sd_per_s=result.median_per_s * log_sd,
        slope_per_s=samples.mean_per_s[rows, last] / samples.parallelism[rows, last],
        length_scale=np.where(line_only, np.nan, result.length_scale),
        signal_ratio=np.where(line_only, np.nan, result.signal_ratio),
        noise_share=result.noise_share,
        at_bound=np.asarray(~line_only & np.isin(result.signal_ratio, RATIOS[[0, -1]])),
        left_out=excluded,
        left_out_place=place,
    )


def leave_out(samples: CapacitySamples, length_scale: Floats, ratio: Floats, key_groups: Floats) -> tuple[Floats, Ints]:
    """Return standardised residuals, (B, m), of points hidden from a fit, NaN elsewhere, and the place they had.

    Twice some points are hidden: every other one between the smallest and the largest, and all beyond half of the
    largest.  Length scales and ratios stay those of the fit to all points, (B,) each.
    """
    present, at = samples.present, samples.parallelism
    number = np.arange(at.shape[1])[None]
    last = (samples.points - 1)[:, None]
    highest = at.max(axis=1, keepdims=True)
    inner = present & (number % 2 == 1) & (number < last)
    upper = present & (at > _HIDDEN_ABOVE * highest)
    residuals, place = np.full(at.shape, np.nan), np.zeros(at.shape, np.int64)
    for hidden, where in ((inner, SupportRegion.BETWEEN), (upper, SupportRegion.BEYOND)):
        rows = np.flatnonzero(hidden.any(axis=1) & ((present & ~hidden).sum(axis=1) >= MIN_POINTS_REMAINING))
        if not len(rows):
            continue
        taken = _standardise(
            samples.take(rows), hidden[rows], length_scale[rows], ratio[rows], key_groups=key_groups[rows]
        )
        block = residuals[rows]
        # Beyond is rarer: a point that was hidden in both ways tells of that.
        fresh = np.isfinite(taken)
        block[fresh] = taken[fresh]
        residuals[rows] = block
        places = place[rows]
        places[fresh] = where
        place[rows] = places
    return residuals, place


def _standardise(
    samples: CapacitySamples, hidden: Bools, length_scale: Floats, ratio: Floats, *, key_groups: Floats
) -> Floats:
    def keep(values: Floats) -> Floats:
        return np.where(hidden, 0.0, values)

    retained = CapacitySamples(
        samples.parallelism, keep(samples.count), keep(samples.mean_per_s), keep(samples.squares), samples.doubt
    )
    query = np.maximum(samples.parallelism, 1.0).astype(np.int64)
    result = fit_averaged(retained, length_scale[:, None], ratio[:, None], key_groups=key_groups, query=query)
    noise = result.noise_share[:, None] / np.sqrt(np.maximum(samples.count, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (samples.mean_per_s / result.median_per_s - 1.0) / np.hypot(result.log_sd, noise)
    # What light use makes of a point says nothing about the curve.
    return np.asarray(np.where(hidden & (samples.doubt == 0.0), z, np.nan), float)
