"""Capacity over parallelism: fitted to what was measured, and the readings between the measured points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import least_squares

from models.arrays import Floats

# No parallelism above this one was measured, nor requested in the paper (Table 4b).
P_MEASURED = 32


def scaling(p: Floats, g: float, a: float, b: float) -> Floats:
    """Return the universal scalability law g p / (1 + a (p - 1) + b p (p - 1)), records/s."""
    return np.asarray(g * p / (1.0 + a * (p - 1.0) + b * p * (p - 1.0)), float)


def fit_relative(p: Floats, capacity_per_s: Floats) -> tuple[float, float, float]:
    """Return (g, a, b) with the least squares of relative errors and free signs.

    Its b is negative for both measured operators, which has no meaning beyond the data.
    """
    start = (float(capacity_per_s[0] / p[0]), 0.03, 0.0)

    def errors(x: Floats) -> Floats:
        return scaling(p, x[0] * start[0], x[1], x[2]) / capacity_per_s - 1.0

    g, a, b = least_squares(errors, (1.0, start[1], start[2]), x_scale=(1.0, 0.1, 1e-3)).x
    return float(g * start[0]), float(a), float(b)


def fit_physical(p: Floats, capacity_per_s: Floats) -> tuple[float, float, float]:
    """Return (g, a, b) with the least squares in records/s and a, b >= 0, as the law defines its coefficients."""
    start, unit = float(capacity_per_s[0] / p[0]), float(capacity_per_s.max())

    def errors(x: Floats) -> Floats:
        return (scaling(p, x[0] * start, x[1], x[2]) - capacity_per_s) / unit

    g, a, b = least_squares(errors, (1.0, 0.03, 1e-4), x_scale=(1.0, 0.1, 1e-3), bounds=(0.0, np.inf)).x
    return float(g * start), float(a), float(b)


def readings(samples: Mapping[str, Sequence[float]]) -> dict[str, Floats]:
    """Return the measured curve at p = 1..32 in three readings, (32,) records/s each.

    Args:
        samples: parallelism -> capacities measured there, records/s.
    """
    grid = np.arange(1.0, P_MEASURED + 1)
    points = np.array([float(p) for p in samples])
    means = np.array([float(np.mean(values)) for values in samples.values()])
    each = np.concatenate([[float(p)] * len(values) for p, values in samples.items()])
    values = np.concatenate([np.asarray(one, float) for one in samples.values()])
    return {
        "physical law": scaling(grid, *fit_physical(each, values)),
        "free law": scaling(grid, *fit_relative(points, means)),
        "interpolated": np.maximum.accumulate(PchipInterpolator(points, means)(np.minimum(grid, points.max()))),
    }
