"""Performance of an online solution: dynamic regret and dynamic fit, Eq. 10 and 12 of Dragster."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.arrays import Floats


def dynamic_regret(best_per_s: npt.ArrayLike, achieved_per_s: npt.ArrayLike) -> Floats:
    """Return Reg_T = sum_t f_t(y*) - f_t(y) for T = 1, 2, ..., Eq. 10.

    Args:
        best_per_s: (..., T) throughput of the best configuration of each slot.
        achieved_per_s: (..., T) throughput of the one chosen.

    Returns:
        (..., T) in records/s times slots.
    """
    return np.cumsum(np.asarray(best_per_s, float) - np.asarray(achieved_per_s, float), axis=-1)


def dynamic_fit(excess: npt.ArrayLike) -> Floats:
    """Return Fit_T = sum_t sum_{i>N} l_i for T = 1, 2, ..., Eq. 12.

    Args:
        excess: (..., M, T) l_i of every operator and slot, Eq. 11; the sources are not among the M operators.

    Returns:
        (..., T) in the unit of ``excess`` times slots; an upper bound of the unprocessed records.
    """
    return np.cumsum(np.asarray(excess, float).sum(axis=-2), axis=-1)
