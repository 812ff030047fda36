"""Latency of a job over its utilisation: non-decreasing, from medians that outliers do not move."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from models.arrays import Floats, Ints
from models.bundle.job_models import LatencyModel

BINS = 32  # of utilisation, hence at most as many knots
# Latencies below this are all "none" to a person; relative errors are taken against at least this much.
NEGLIGIBLE_MS = 100.0


def utilisation_bin(utilisation: Floats) -> Ints:
    """Return the bin 0..BINS-1 of each utilisation (...); everything above 1 falls into the last.

    >>> utilisation_bin(np.array([0.0, 0.5, 1.2])).tolist()
    [0, 16, 31]
    """
    return np.clip((utilisation * BINS).astype(np.int64), 0, BINS - 1)


def fit_latency(utilisation: Floats, latency_ms: Floats, weight: Floats) -> LatencyModel:
    """Fit one job by isotonic regression over (n,) bins, BINS at most: mean utilisation, median latency, windows."""
    usable = np.isfinite(utilisation) & np.isfinite(latency_ms) & (weight > 0)
    if not usable.any():
        return LatencyModel(np.zeros(0), np.zeros(0))
    model = IsotonicRegression(increasing=True, out_of_bounds="clip", y_min=0.0)
    model.fit(utilisation[usable], latency_ms[usable], weight[usable])
    return LatencyModel(np.asarray(model.X_thresholds_, float), np.asarray(model.y_thresholds_, float))


def fit_windows(utilisation: Floats, latency_ms: Floats) -> LatencyModel:
    """Fit one job from its single windows, (n,) each: bins and their medians first.

    >>> model = fit_windows(np.array([0.2, 0.5, 0.9]), np.array([10.0, 20.0, 400.0]))
    >>> model.latency_ms([0.1, 0.7, 1.0]).round(3).tolist()
    [10.0, 210.0, 400.0]
    """
    bins = utilisation_bin(utilisation)
    order = np.lexsort((latency_ms, bins))
    count = np.bincount(bins, minlength=BINS)
    begin = np.cumsum(count) - count
    filled = count > 0
    lower, upper = begin + (count - 1) // 2, begin + count // 2
    sorted_ms = latency_ms[order]
    medians = 0.5 * (sorted_ms[lower[filled]] + sorted_ms[upper[filled]])
    means = np.bincount(bins, utilisation, minlength=BINS)[filled] / count[filled]
    return fit_latency(means, medians, count[filled].astype(float))


def latency_errors(predicted_ms: Floats, observed_ms: Floats) -> Floats:
    """Return |predicted - measured| / max(measured, NEGLIGIBLE_MS), (...)."""
    return np.asarray(np.abs(predicted_ms - observed_ms) / np.maximum(observed_ms, NEGLIGIBLE_MS), float)
