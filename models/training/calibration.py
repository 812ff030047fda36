"""Calibration of capacity intervals: what a trial predicted of the hours after it, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.capacity.conformal import Z
from models.capacity.interval_calibration import find_places_of, learn_scales
from models.training.job_tests import JobTests
from models.training.operator_fits import Fits, OperatorFit


@dataclass(frozen=True, slots=True)
class Residuals:
    """Standardised residuals of windows ahead of a trial, (n,): begin in epoch seconds, place, residual."""

    start_s: Ints
    place: Ints
    residual: Floats

    @classmethod
    def join(cls, parts: Iterable[Residuals]) -> Residuals:
        """Return those of several jobs."""
        listed = list(parts)
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(one.start_s for one in listed)]),
            np.concatenate([none, *(one.place for one in listed)]),
            np.concatenate([np.zeros(0), *(one.residual for one in listed)]),
        )

    def take(self, rows: np.ndarray) -> Residuals:
        """Return some of them."""
        return Residuals(self.start_s[rows], self.place[rows], self.residual[rows])


def standardise_ahead(tests: JobTests, trial: Fits) -> Residuals:
    """Return the residuals of a job's windows ahead whose operator and parallelism a trial knows."""
    ahead, parts = tests.ahead, []
    for operator in np.unique(ahead.operator).tolist():
        fitted = trial.get(tests.operators[operator])
        if fitted is None:
            continue
        mine = np.flatnonzero((ahead.operator == operator) & (ahead.parallelism <= len(fitted.mean_per_s)))
        at = ahead.parallelism[mine]
        mean = fitted.mean_per_s[at - 1]
        width = np.hypot(fitted.sd_per_s[at - 1], fitted.noise_share * mean) * Z[0]
        residual = (ahead.capacity_per_s[mine] - mean) / (width / Z[0])
        parts.append(Residuals(ahead.start_s[mine], find_places_of(at, fitted.observed), residual))
    return Residuals.join(parts)


def scale_intervals(residuals: Residuals, fitted: Sequence[OperatorFit]) -> Floats:
    """Return (places, levels) factors with which intervals would have held what was ahead and what was hidden."""
    excluded = np.concatenate([np.zeros(0), *(one.left_out for one in fitted)])
    place = np.concatenate([np.zeros(0, np.int64), *(one.left_out_place for one in fitted)])
    return learn_scales(residuals.residual, residuals.place, excluded, place)
