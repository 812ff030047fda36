"""What all conformal intervals share: their levels, and which of the sorted errors ends an interval.

Split conformal prediction: Lei et al. 2018, "Distribution-free predictive inference for regression".
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import ndtri

from models.arrays import Ints

LEVELS: Final = (0.8, 0.95)
Z: Final = np.array([ndtri(0.5 + 0.5 * level) for level in LEVELS])
"""(2,) half-widths of a normal distribution's intervals, in standard deviations."""


def conformal_rank(count: Ints | int, level: float) -> Ints:
    """Return the place, from 0, among ``count`` sorted errors of the one that ends an interval of a level."""
    return np.asarray(np.minimum(np.ceil((np.asarray(count) + 1) * level), count), np.int64) - 1
