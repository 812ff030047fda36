"""The capacity models of training for windows of a fleet, so that a commit can be measured beside another."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.capacity.saturated_points import list_saturated
from models.arrays import Bools, Floats, Ints
from models.capacity.conformal import Z
from models.capacity.interval_calibration import find_places
from models.training.calibration import Residuals, scale_intervals
from models.training.job_tests import WINDOWS_PER_POINT
from models.training.operator_fits import OperatorFit, fit_operators

KEPT: Final = 5  # windows per parallelism, as training.recent_per_parallelism


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
    """Curves of B' operators on the grid 1..P.

    Attributes:
        rows: (B',) operators that have a curve; the other arrays are of these.
        fits: of each.
        mean_per_s, sd_per_s: (B', P); the deviation of the capacity, before any calibration.
        is_observed: (B', P) where it was observed.
        noise_share: (B',) of one window.
        cpu_s: what the fit took.
    """

    rows: Ints
    fits: list[OperatorFit]
    mean_per_s: Floats
    sd_per_s: Floats
    is_observed: Bools
    noise_share: Floats
    cpu_s: float


def fit_model(windows: Windows, top: int) -> Model:
    """Fit a fleet as training does; every window counts."""
    began = time.process_time()
    points = list_saturated(
        windows.owner,
        windows.parallelism,
        windows.timestamp,
        windows.capacity_per_s,
        keep=KEPT,
        largest=windows.largest,
        key_groups=windows.key_groups,
        top=top,
    )
    fits = fit_operators(points)
    cpu_s = time.process_time() - began
    grid = np.arange(1, top + 1)
    return Model(
        np.unique(windows.owner),
        fits,
        np.stack([one.mean_per_s for one in fits]),
        np.stack([one.sd_per_s for one in fits]),
        np.stack([np.isin(grid, one.observed) for one in fits]),
        np.array([one.noise_share for one in fits]),
        cpu_s,
    )


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
    grid = np.arange(1, model.mean_per_s.shape[1] + 1)
    lowest = np.where(model.is_observed, grid, len(grid)).min(axis=1)[row]
    highest = np.where(model.is_observed, grid, 0).max(axis=1)[row]
    place = find_places(at, lowest, highest, model.is_observed[row, at - 1])
    return Predicted(known, mean, sd, place, at / highest)


def _thin_out(windows: Windows) -> Windows:
    """Return at most WINDOWS_PER_POINT windows of each operator and parallelism, as training calibrates on."""
    draws = np.random.default_rng(0).permutation(len(windows.owner))
    point = windows.owner[draws] * 10_000 + windows.parallelism[draws]
    order = np.argsort(point, kind="stable")
    first = np.flatnonzero(np.diff(point[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return windows.take(draws[order[rank < WINDOWS_PER_POINT]])


def learn_half_widths(model: Model, windows: Windows, is_ahead: np.ndarray, top: int) -> Floats:
    """Return (places, levels) half-widths of intervals in standard deviations.

    A trial, fitted without the windows ahead, predicts them.
    """
    ahead = _thin_out(windows.take(is_ahead))
    reported = predict(fit_model(windows.take(~is_ahead), top), ahead.owner, ahead.parallelism)
    residual = (ahead.capacity_per_s[reported.known] - reported.mean_per_s) / reported.sd_per_s
    residuals = Residuals(ahead.timestamp[reported.known].astype(np.int64), reported.place, residual)
    return np.asarray(scale_intervals(residuals, model.fits) * Z, float)
