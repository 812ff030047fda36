"""How an error grows with the load that was foretold: at night as large as at noon, or in proportion.

    x (P, n, H)   shape: what was foretold over its mean over the horizon
    p (n,)        proportion: 0 where errors are the same at any load, 1 where they are proportional to it
    s (P, n, H)   scale of an error: 1 + p (x - 1)

An offset from errors of all hours is too wide in the quiet ones where errors grow with the load, and too narrow in the
busy ones.  Quantiles of e / s, times s, are locally weighted conformal prediction (section 5.2 of Lei et al. 2018,
"Distribution-free predictive inference for regression").
Deviation: s is no second regression but has one parameter, the p whose quantiles would have lost least lately.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats
from models.forecasting.errors import Errors

CHOICE: Final = (0.0, 0.5, 1.0)
"""Proportions that are compared."""
LEAST_GAIN: Final = 0.05
"""Another than 0 is taken where its quantiles lose less by this share: else chance would choose, every day anew."""
LEAST_SCALE: Final = 0.02
"""Where next to nothing is foretold an error still has a size."""


def shape(predicted: Floats) -> Floats:
    """Return what was foretold, (..., H) records/s, over its mean over the horizon."""
    rates = np.where(np.isfinite(predicted), np.maximum(predicted, 0.0), 0.0)
    counted = np.isfinite(predicted).sum(axis=-1, keepdims=True)
    mean = rates.sum(axis=-1, keepdims=True) / np.maximum(counted, 1)
    return np.asarray(np.where(np.isfinite(predicted), rates / np.where(mean > 0, mean, 1.0), np.nan))


def scale(shapes: Floats, proportion: Floats) -> Floats:
    """Return s, (..., H), from shapes (..., H) and proportions (...) or fewer axes, which count for all."""
    return np.asarray(np.maximum(1.0 + proportion[..., None] * (shapes - 1.0), LEAST_SCALE))


def chosen(errors: Floats, shapes: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return the proportion of each series whose quantiles lose least, shape (n,); 0 where no error is known.

    Args:
        errors: seen - said, records/s, NaN where unknown, shape (P, n, H).
        shapes: of what was said, shape (P, n, H).
        weights: of the errors, shape (P, H).
        levels: of the quantiles, shape (L,).
    """
    if not errors.size:
        return np.zeros(errors.shape[1])
    known = np.where(np.isfinite(errors), weights[:, None], 0.0)
    wanted = np.repeat(levels[:, None], errors.shape[1], axis=1)
    lost = np.empty((len(CHOICE), errors.shape[1]))
    for place, proportion in enumerate(CHOICE):
        scales = scale(shapes, np.array(proportion))
        offsets = Errors.of(errors / scales, errors.shape[2]).quantiles(wanted, weights)  # (L, n, 1)
        loss = np.zeros(errors.shape[1])
        for level, offset in zip(levels, offsets, strict=True):
            above = np.nan_to_num(errors - offset * scales)
            loss += np.einsum("pnh,pnh->n", known, np.maximum(level * above, (level - 1.0) * above))
        lost[place] = loss
    lost[0] *= 1.0 - LEAST_GAIN
    return np.asarray(np.array(CHOICE)[np.argmin(lost, axis=0)])
