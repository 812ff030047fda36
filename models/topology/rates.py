"""Observed and true rates of operator instances and of whole operators, Eq. 1-6 of DS2."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.arrays import Floats


def observed_rate(records: npt.ArrayLike, window_s: npt.ArrayLike) -> Floats:
    """Return records / window, Eq. 3 (processed) and Eq. 4 (produced) of DS2, (...) records/s."""
    return np.asarray(np.asarray(records, float) / np.asarray(window_s, float), float)


def true_rate(records: npt.ArrayLike, useful_s: npt.ArrayLike) -> Floats:
    """Return the rate an instance would have if it never waited, Eq. 1 (processed) and Eq. 2 (produced) of DS2.

    Args:
        records: (...) records in the window.
        useful_s: (...) seconds of the window spent working, not waiting for input or output.

    Returns:
        (...) records/s; NaN where the instance did no work, since the rate is undefined there.
    """
    useful = np.asarray(useful_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(useful > 0, np.asarray(records, float) / useful, np.nan)


def aggregate_rate(rates_per_s: npt.ArrayLike) -> Floats:
    """Return an operator's rate, the sum over its instances: Eq. 5 and Eq. 6 of DS2.

    Instances without a rate count as the mean of the others.  Deviation: DS2 waits for a report of every instance; a
    batch over past windows would lose the window.

    Args:
        rates_per_s: (..., instances) rates of the instances, NaN where undefined.

    Returns:
        (...) records/s of the whole operator; NaN when no instance has a rate.
    """
    rates = np.asarray(rates_per_s, float)
    defined = np.isfinite(rates)
    with np.errstate(invalid="ignore"):
        mean = np.where(defined, rates, 0.0).sum(axis=-1) / defined.sum(axis=-1)
    return np.asarray(mean * rates.shape[-1], float)
