"""A job's own load as it is replayed: bins without gaps, and the steps that lie between their middles."""

from __future__ import annotations

import numpy as np

from include.utc import DAY_S
from models.simulation.spec import BoolArray, FloatArray, IntArray

SHORT_GAP_S = 3600


def without_gaps(rates_per_s: FloatArray, bin_s: int) -> FloatArray:
    """Return the rates without NaN, by the rules of the replay's traces.

    Gaps of up to an hour are joined linearly, longer ones filled from the same time of the day before, else of the day
    after, else joined linearly too.

    Args:
        rates_per_s: (T,) with a value at least.
        bin_s: length of a bin.
    """
    known = np.isfinite(rates_per_s)
    joined = np.interp(np.arange(len(known)), np.flatnonzero(known), rates_per_s[known])
    begin, end = _gaps(known)
    long = (end - begin) * bin_s > SHORT_GAP_S
    filled = joined.copy()
    for first, last in zip(begin[long], end[long], strict=True):
        filled[first:last] = np.nan
    day = DAY_S // bin_s
    for first, last in zip(begin[long], end[long], strict=True):
        for at in range(first, last):  # in order, so that a gap of days goes on with what its first day was given
            near = [filled[place] for place in (at - day, at + day) if 0 <= place < len(filled)]
            filled[at] = next((value for value in near if np.isfinite(value)), joined[at])
    return filled


def _gaps(known: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the first bins of the gaps and the bins after their last."""
    edges = np.diff(np.concatenate([[True], known, [True]]).astype(np.int8))
    return np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)


def in_steps(rates_per_s: FloatArray, bin_s: int, step_s: int) -> FloatArray:
    """Return (n, S) rates of steps, joined linearly between the middles of (T, S) bins."""
    middles = (np.arange(len(rates_per_s)) + 0.5) * bin_s
    at = (np.arange(len(rates_per_s) * bin_s // step_s) + 0.5) * step_s
    return np.stack([np.interp(at, middles, column) for column in rates_per_s.T], axis=1)
