"""The parallelism that sustains a rate: Eq. 7 of DS2."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.arrays import Floats

# A quotient this close above an integer is rounding error of floating point, not need for one more instance.
_CEIL_SLACK = 1e-9


def unrounded_parallelism(
    required_per_s: npt.ArrayLike, true_processing_per_s: npt.ArrayLike, parallelism: npt.ArrayLike
) -> Floats:
    """Return the quotient of Eq. 7 of DS2: required rate / true processing rate of one instance.

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.

    Returns:
        (...) instances; NaN where the true rate is not known or not positive.
    """
    rate = np.asarray(true_processing_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.asarray(required_per_s, float) * np.asarray(parallelism, float) / rate
    return np.asarray(np.where(np.isfinite(rate) & (rate > 0), raw, np.nan), float)


def optimal_parallelism(
    required_per_s: npt.ArrayLike,
    true_processing_per_s: npt.ArrayLike,
    parallelism: npt.ArrayLike,
    *,
    scaling_factor: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Return the smallest sufficient parallelism, Eq. 7 of DS2, at least 1.

    Deviation: where the true rate is not known the parallelism stays (DS2 casts the undefined quotient to an integer).

    Args:
        required_per_s: (...) records/s that must be processed.
        true_processing_per_s: (...) aggregated true rate of the operator at the parallelism.
        parallelism: (...) at which the true rate was seen.
        scaling_factor: headroom, 0.2 for 20% more than needed.
    """
    raw = unrounded_parallelism(required_per_s, true_processing_per_s, parallelism) * (1.0 + scaling_factor)
    wanted = np.where(np.isfinite(raw), np.maximum(np.ceil(raw * (1.0 - _CEIL_SLACK)), 1.0), parallelism)
    return wanted.astype(np.int64)
