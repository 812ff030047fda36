"""How an error grows with the predicted load: at night as large as at noon, or in proportion.

    x (P, n, H)   shape: the predicted load over its mean over the horizon
    p (n,)        proportion: 0 where errors are the same at any load, 1 where they are proportional to it
    s (P, n, H)   scale of an error: 1 + p (x - 1)

An offset from errors of all hours is too wide in the quiet ones where errors grow with the load, and too narrow in the
busy ones.  Quantiles of e / s, times s, are locally weighted conformal prediction (section 5.2 of Lei et al. 2018,
"Distribution-free predictive inference for regression").
Deviation: s is no second regression but has one parameter, the p whose quantiles would have had the smallest recent
loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.forecasting.errors import Errors

PROPORTIONS: Final = (0.0, 0.5, 1.0)
"""The proportions to choose from."""
MIN_GAIN: Final = 0.05
"""Another than 0 is chosen where the loss of its quantiles is smaller by this share: else chance would choose."""
MIN_SCALE: Final = 0.02
"""Where the predicted load is close to 0 an error still has a size."""


def shape(predicted: Floats, leads: Ints | slice = slice(None)) -> Floats:
    """Return the predicted load at some leads of all, (..., H) records/s, over its mean over the horizon."""
    known = np.isfinite(predicted)
    rates = np.where(known, np.maximum(predicted, 0.0), 0.0)
    mean = rates.sum(axis=-1, keepdims=True) / np.maximum(known.sum(axis=-1, keepdims=True), 1)
    return np.asarray(np.where(known[..., leads], rates[..., leads] / np.where(mean > 0, mean, 1.0), np.nan))


def scale(shapes: Floats, proportion: Floats) -> Floats:
    """Return s, (..., H), from shapes (..., H) and proportions (...), or with fewer axes, which are broadcast."""
    return np.asarray(np.maximum(1.0 + proportion[..., None] * (shapes - 1.0), MIN_SCALE))


def choose_proportion(
    errors: Floats, shapes: Floats, ordered: Sequence[Errors], weights: Floats, levels: Floats
) -> Ints:
    """Return which of the PROPORTIONS has the smallest loss of its quantiles, shape (n,); the first without errors.

    Args:
        errors: observed - predicted, records/s, NaN where unknown, shape (P, n, H).
        shapes: of the predicted load, shape (P, n, H).
        ordered: the errors over their scale at each of the PROPORTIONS, all leads together.
        weights: of the errors, shape (P, H).
        levels: of the quantiles, shape (L,).
    """
    rows = np.flatnonzero(weights.any(axis=1))
    if not (len(rows) and errors.size):
        return np.zeros(errors.shape[1], np.int64)
    known = np.isfinite(errors[rows])
    weight = np.where(known, weights[rows, None], 0.0)
    errors, shapes = np.where(known, errors[rows], 0.0), np.where(known, shapes[rows], 1.0)
    all_levels = np.repeat(levels[:, None], errors.shape[1], axis=1)
    losses = np.empty((len(PROPORTIONS), errors.shape[1]))
    for place, proportion in enumerate(PROPORTIONS):
        scales = scale(shapes, np.array(proportion))
        offsets = np.nan_to_num(ordered[place].quantiles(all_levels, weights))  # (L, n, 1)
        loss = np.zeros(errors.shape[1])
        for level, offset in zip(levels, offsets, strict=True):
            above = errors - offset * scales
            loss += np.einsum("pnh,pnh->n", weight, np.maximum(level * above, (level - 1.0) * above))
        losses[place] = loss
    losses[0] *= 1.0 - MIN_GAIN
    return np.asarray(np.argmin(losses, axis=0), np.int64)
