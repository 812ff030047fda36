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

from typing import Final

import numpy as np

from models.arrays import Floats
from models.forecasting.errors import Errors

PROPORTIONS: Final = (0.0, 0.5, 1.0)
"""The proportions to choose from."""
MIN_GAIN: Final = 0.05
"""Another than 0 is chosen where the loss of its quantiles is smaller by this share: else chance would choose."""
MIN_SCALE: Final = 0.02
"""Where the predicted load is close to 0 an error still has a size."""


def shape(predicted: Floats) -> Floats:
    """Return the predicted load, (..., H) records/s, over its mean over the horizon."""
    rates = np.where(np.isfinite(predicted), np.maximum(predicted, 0.0), 0.0)
    counted = np.isfinite(predicted).sum(axis=-1, keepdims=True)
    mean = rates.sum(axis=-1, keepdims=True) / np.maximum(counted, 1)
    return np.asarray(np.where(np.isfinite(predicted), rates / np.where(mean > 0, mean, 1.0), np.nan))


def scale(shapes: Floats, proportion: Floats) -> Floats:
    """Return s, (..., H), from shapes (..., H) and proportions (...), or with fewer axes, which are broadcast."""
    return np.asarray(np.maximum(1.0 + proportion[..., None] * (shapes - 1.0), MIN_SCALE))


def choose_proportion(errors: Floats, shapes: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return the proportion of each series with the smallest loss of its quantiles, shape (n,); 0 without errors.

    Args:
        errors: observed - predicted, records/s, NaN where unknown, shape (P, n, H).
        shapes: of the predicted load, shape (P, n, H).
        weights: of the errors, shape (P, H).
        levels: of the quantiles, shape (L,).
    """
    if not errors.size:
        return np.zeros(errors.shape[1])
    weight = np.where(np.isfinite(errors), weights[:, None], 0.0)
    all_levels = np.repeat(levels[:, None], errors.shape[1], axis=1)
    losses = np.empty((len(PROPORTIONS), errors.shape[1]))
    for place, proportion in enumerate(PROPORTIONS):
        scales = scale(shapes, np.array(proportion))
        offsets = Errors.of(errors / scales, errors.shape[2]).quantiles(all_levels, weights)  # (L, n, 1)
        loss = np.zeros(errors.shape[1])
        for level, offset in zip(levels, offsets, strict=True):
            above = np.nan_to_num(errors - offset * scales)
            loss += np.einsum("pnh,pnh->n", weight, np.maximum(level * above, (level - 1.0) * above))
        losses[place] = loss
    losses[0] *= 1.0 - MIN_GAIN
    return np.asarray(np.array(PROPORTIONS)[np.argmin(losses, axis=0)])
