"""The reactive module, Section 4.2: utilisation as a linear function of the load of a worker, tuned by feedback."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from models.arrays import Floats

FEWEST_SAMPLES = 12
# Mean distance of a normal variable from its mean, in standard deviations.
_MEAN_DISTANCE = math.sqrt(2.0 / math.pi)


@dataclass(frozen=True, slots=True)
class UtilisationSample:
    """What a window shows.

    Attributes:
        load_per_s: records/s of a worker, y / x.
        use: of a worker, 0..1.
    """

    load_per_s: float
    use: float


@dataclass(frozen=True, slots=True)
class Estimator:
    """Utilisation of a worker: ``slope * load + base`` and a normal error, Eq. 3 and 4.

    Attributes:
        slope: w_k, per record/s of a worker.
        base: w_b.
        error_slope, error_base: sigma_k and sigma_b; the error's standard deviation is linear in the load, too.
    """

    slope: float
    base: float = 0.0
    error_slope: float = 0.0
    error_base: float = 0.0

    def correct(self, sample: UtilisationSample, feedback: float) -> Estimator:
        """Return the estimator after Algorithm 1's step (Widrow-Hoff) of the slope, which stays positive.

        Args:
            sample: the newest.
            feedback: eta times the square of the load.
        """
        error = self.slope * sample.load_per_s + self.base - sample.use
        slope = self.slope - feedback * error / sample.load_per_s
        return replace(self, slope=slope) if slope > 0 else self


def fit_estimator(samples: Sequence[UtilisationSample]) -> Estimator | None:
    """Fit all four coefficients, none of them negative; a proportion alone of few samples, None of none.

    Deviation: by least squares, of the absolute residuals for the error, where the paper maximises the likelihood.
    """
    if not samples:
        return None
    load, use = np.array([(one.load_per_s, one.use) for one in samples]).T
    if len(samples) < FEWEST_SAMPLES:
        return Estimator(float(use.sum() / load.sum()))
    slope, base = _fit_line(load, use)
    if not slope > 0:
        return Estimator(float(use.sum() / load.sum()))
    error_slope, error_base = _fit_line(load, np.abs(use - slope * load - base) / _MEAN_DISTANCE)
    return Estimator(slope, base, error_slope, error_base)


def _fit_line(at: Floats, values: Floats) -> tuple[float, float]:
    """Return slope and intercept, not negative."""
    scale = float(at.max())
    (slope, intercept), _ = nnls(np.column_stack([at / scale, np.ones(len(at))]), values)
    return float(slope) / scale, float(intercept)
