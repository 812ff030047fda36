"""One quantile of a load that is known at some."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from models.arrays import Floats
from models.scheduling.demand import quantiles_at_scores


def quantile_at_level(values: Floats, level: float) -> Floats:
    """Return the quantile of one level, (...) for ``values`` of shape (L, ...).

    >>> from models.scheduling.demand import SCORES
    >>> normal = 1000.0 + 100.0 * SCORES
    >>> [round(float(quantile_at_level(normal, level)), 1) for level in (0.5, 0.8, 0.975)]
    [1000.0, 1084.2, 1196.0]
    """
    return np.asarray(quantiles_at_scores(values, ndtri(np.array([level])))[0])
