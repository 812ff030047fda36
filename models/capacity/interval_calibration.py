"""Intervals that hold what they promise: by how much the standard deviations of capacities have to be multiplied.

Split conformal prediction on standardised residuals (Lei et al. 2018, "Distribution-free predictive inference for
regression", 5.2): a model predicts what it was not trained on; z = (seen - predicted) / predicted standard deviation;
the q-th quantile of |z| is where an interval has to end that shall hold a share q.  Residuals are taken apart by where
a parallelism lies, because curves are wrong in other ways between what was seen than beyond it.

Deviation: few residuals are mixed with PRIOR_RESIDUALS of a normal distribution, so that a first training, which has
none, has the intervals of its model; exact coverage of a small sample is lost by that.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from scipy.special import ndtri

from models.arrays import Bools, Floats, Ints
from models.capacity.conformal import LEVELS, Z, conformal_rank

PRIOR_RESIDUALS: Final = 20
_SCALE_LIMITS: Final = (0.25, 8.0)


class SupportRegion(IntEnum):
    """Where a parallelism lies among those that an operator was observed at."""

    SEEN = 0
    BETWEEN = 1
    BEYOND = 2


def find_places(parallelism: Ints, lowest: Floats | int, highest: Floats | int, is_observed: Bools) -> Ints:
    """Return (...) :class:`SupportRegion` of parallelisms; all arguments broadcast."""
    inside = (parallelism >= lowest) & (parallelism <= highest)
    return np.where(
        is_observed, SupportRegion.SEEN, np.where(inside, SupportRegion.BETWEEN, SupportRegion.BEYOND)
    ).astype(np.int64)


def find_places_of(parallelism: Ints, observed: Ints) -> Ints:
    """Return (n,) :class:`SupportRegion` of parallelisms, (n,), of one operator that was observed at (m,) others."""
    lowest, highest = observed.min(initial=np.iinfo(np.int64).max), observed.max(initial=0)
    return find_places(parallelism, lowest, highest, np.isin(parallelism, observed))


def learn_scales(forward: Floats, forward_place: Ints, left_out: Floats, left_out_place: Ints) -> Floats:
    """Return (places, levels) factors on a standard deviation, for intervals of LEVELS.

    Args:
        forward: (n,) standardised residuals of windows after those that a model was trained on; NaN is left out.
        forward_place: (n,) of each.
        left_out: (k,) of points that were hidden from a fit; they stand for what was not seen forward in time.
        left_out_place: (k,) of each.
    """
    middles = (np.arange(PRIOR_RESIDUALS) + 0.5) / PRIOR_RESIDUALS
    result = np.ones((len(SupportRegion), len(LEVELS)))
    for one in SupportRegion:
        prior, mine = (
            np.abs(values[(place == one) & np.isfinite(values)])
            for values, place in ((left_out, left_out_place), (forward, forward_place))
        )
        usual = np.quantile(np.concatenate([prior, ndtri(0.5 + 0.5 * middles)]), middles)
        pooled = np.sort(np.concatenate([mine, usual]))
        for column, level in enumerate(LEVELS):
            result[one, column] = pooled[conformal_rank(len(pooled), level)] / Z[column]
    return np.clip(result, *_SCALE_LIMITS)


def half_widths(z: float, tail_ratio: Floats | None) -> Floats | float:
    """Return how many calibrated standard deviations stand for z of a normal distribution, (...) as ``tail_ratio``.

    Up to the 80% interval it is z; from the 95% interval on z times ``tail_ratio``; linear between.
    """
    if tail_ratio is None:
        return z
    share = np.clip((abs(z) - Z[0]) / (Z[1] - Z[0]), 0.0, 1.0)
    return np.asarray(z * (1.0 + share * (tail_ratio - 1.0)), float)
