"""Two generations of capacity models behind one interface, so that a commit can be measured beside another.

A generation is what ``spark_jobs/train`` does with the windows of a fleet: reduce, fit, and say how wide intervals are.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.capacity.capacity_samples import Samples, pack

KEPT: Final = 5  # windows per parallelism, as training.recent_per_parallelism
PER_POINT: Final = 3  # as interval_scores.WINDOWS_PER_POINT
NORMAL_Z: Final = np.array([1.2816, 1.9600])


@dataclass(frozen=True, slots=True)
class Windows:
    """Measured windows: (n,) each; ``key_groups`` and ``largest`` are of all operators, (B,)."""

    owner: Ints
    parallelism: Ints
    timestamp: Floats
    capacity_per_s: Floats
    key_groups: Floats
    largest: Floats

    def take(self, rows: np.ndarray) -> Windows:
        """Return some of the windows."""
        taken = (self.owner[rows], self.parallelism[rows], self.timestamp[rows], self.capacity_per_s[rows])
        return Windows(*taken, self.key_groups, self.largest)


@dataclass(frozen=True, slots=True)
class Model:
    """Curves of B operators on the grid 1..P.

    Attributes:
        rows: (B',) operators that have a curve; the other arrays are of these.
        samples: what they were fitted to.
        mean_per_s: (B', P).
        sd_per_s: (B', P) of the capacity, before any calibration.
        noise_share: (B',) of one window.
        cpu_s: what the fit took.
        left_out, left_out_place: residuals of hidden points; empty where a generation has none.
    """

    rows: Ints
    samples: Samples
    mean_per_s: Floats
    sd_per_s: Floats
    noise_share: Floats
    cpu_s: float
    left_out: Floats
    left_out_place: Ints


def is_calibrated() -> bool:
    """Whether the code at hand calibrates its intervals (since version 4 of the models' format)."""
    return importlib.util.find_spec("models.capacity.interval_calibration") is not None


def fit_model(windows: Windows, top: int) -> Model:
    """Fit a fleet with the code at hand; windows of every operator must be there."""
    rows, owner = np.unique(windows.owner, return_inverse=True)
    fit: Callable[..., Model] = _fit_now if is_calibrated() else _fit_before
    return fit(windows, rows, owner.astype(np.int64), top)


def _fit_now(windows: Windows, rows: Ints, owner: Ints, top: int) -> Model:
    from models.capacity.operator_curves import fit_operator_curves
    from models.capacity.robust_means import reduce_windows, select_recent

    began = time.process_time()
    recent = select_recent(owner, windows.parallelism, windows.timestamp, KEPT)
    samples = pack(*reduce_windows(owner[recent], windows.parallelism[recent], windows.capacity_per_s[recent]))
    curves = fit_operator_curves(samples, windows.largest[rows], windows.key_groups[rows], top)
    cpu_s = time.process_time() - began
    return Model(
        rows,
        samples,
        curves.mean_per_s,
        curves.sd_per_s,
        curves.noise_share,
        cpu_s,
        curves.left_out.ravel(),
        curves.left_out_place.ravel(),
    )


def _fit_before(windows: Windows, rows: Ints, owner: Ints, top: int) -> Model:
    from models.capacity.capacity_samples import recent_means
    from models.capacity.curves import fit_curves, scaling_error, widen

    began = time.process_time()
    points = recent_means(owner, windows.parallelism, windows.timestamp, windows.capacity_per_s, keep=KEPT)
    samples = pack(*points)
    curves = fit_curves(samples, windows.largest[rows], top)
    noise = curves.noise_share[points[0]] / np.sqrt(points[2])
    error = scaling_error(points[0], points[1], points[3], noise)
    lowest, highest = observed_range(samples)
    grid = np.broadcast_to(np.arange(1.0, top + 1), curves.mean_per_s.shape)
    sd = widen(curves.mean_per_s, curves.sd_per_s, grid, lowest=lowest[:, None], highest=highest[:, None], error=error)
    cpu_s = time.process_time() - began
    none = np.zeros(0)
    return Model(rows, samples, curves.mean_per_s, sd, curves.noise_share, cpu_s, none, none.astype(np.int64))


def observed_range(samples: Samples) -> tuple[Floats, Floats]:
    """Return the smallest and the largest parallelism that each operator was seen at."""
    lowest = np.where(samples.present, samples.parallelism, np.inf).min(axis=1)
    return lowest, np.asarray(samples.parallelism.max(axis=1), float)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a model says of n windows.

    Attributes:
        known: (n,) whether it knows the operator; the other arrays are of those.
        mean_per_s: (k,).
        sd_per_s: (k,) of one window.
        place: (k,) 0 seen, 1 between, 2 beyond.
        reach: (k,) parallelism over the largest that was seen.
    """

    known: np.ndarray
    mean_per_s: Floats
    sd_per_s: Floats
    place: Ints
    reach: Floats


def predict(model: Model, owner: Ints, parallelism: Ints) -> Predicted:
    """Return what a model says of windows of operators, (n,), at parallelisms, (n,)."""
    known = np.isin(owner, model.rows) & (parallelism <= model.mean_per_s.shape[1])
    row, at = np.searchsorted(model.rows, owner[known]), parallelism[known]
    mean = model.mean_per_s[row, at - 1]
    sd = np.hypot(model.sd_per_s[row, at - 1], model.noise_share[row] * mean)
    lowest, highest = (ends[row] for ends in observed_range(model.samples))
    is_observed = (model.samples.parallelism[row] == at[:, None]).any(axis=1)
    place = np.where(is_observed, 0, np.where((at >= lowest) & (at <= highest), 1, 2))
    return Predicted(known, mean, sd, place.astype(np.int64), at / highest)


def _thin_out(windows: Windows) -> Windows:
    """Return at most PER_POINT windows of each operator and parallelism, as the training stage calibrates on."""
    draws = np.random.default_rng(0).permutation(len(windows.owner))
    point = windows.owner[draws] * 10_000 + windows.parallelism[draws]
    order = np.argsort(point, kind="stable")
    first = np.flatnonzero(np.diff(point[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return windows.take(draws[order[rank < PER_POINT]])


def learn_half_widths(model: Model, windows: Windows, is_ahead: np.ndarray, top: int) -> Floats:
    """Return (places, levels) half-widths of intervals in standard deviations.

    The code before has those of a normal distribution.  The code now has a trial, fitted without the windows ahead,
    predict them.
    """
    if not is_calibrated():
        return np.tile(NORMAL_Z, (3, 1))
    from models.capacity.interval_calibration import learn_scales
    from models.conformal import Z

    ahead = _thin_out(windows.take(is_ahead))
    reported = predict(fit_model(windows.take(~is_ahead), top), ahead.owner, ahead.parallelism)
    residual = (ahead.capacity_per_s[reported.known] - reported.mean_per_s) / reported.sd_per_s
    return np.asarray(learn_scales(residual, reported.place, model.left_out, model.left_out_place) * Z, float)
