"""A measured load as it is replayed: bins without gaps, and the steps that lie between their middles."""

from __future__ import annotations

import numpy as np

from include.utc import DAY_S
from models.arrays import Bools, Floats, Ints

SHORT_GAP_S = 3600


def fill_gaps(rates_per_s: Floats, bin_s: int) -> Floats:
    """Return the rates without NaN.

    Gaps of up to an hour are joined linearly, longer ones filled from the same time of the day before, else of the day
    after, else joined linearly too.

    Args:
        rates_per_s: (T,) with a value at least.
        bin_s: length of a bin.
    """
    known = np.isfinite(rates_per_s)
    joined = np.interp(np.arange(len(known)), np.flatnonzero(known), rates_per_s[known])
    begin, end = find_gaps(known)
    long = (end - begin) * bin_s > SHORT_GAP_S
    filled = joined.copy()
    for first, last in zip(begin[long], end[long], strict=True):
        filled[first:last] = np.nan
    day = DAY_S // bin_s
    for first, last in zip(begin[long], end[long], strict=True):
        for at in range(first, last):  # in order, so that a gap of days repeats what its first day was given
            near = [filled[place] for place in (at - day, at + day) if 0 <= place < len(filled)]
            filled[at] = next((value for value in near if np.isfinite(value)), joined[at])
    return filled


def find_gaps(known: Bools) -> tuple[Ints, Ints]:
    """Return the first bins of the gaps and the bins after their last."""
    edges = np.diff(np.concatenate([[True], known, [True]]).astype(np.int8))
    return np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)


def interpolate_steps(rates_per_s: Floats, bin_s: int, step_s: int) -> Floats:
    """Return (n, S) rates of steps, joined linearly between the middles of (T, S) bins."""
    middles = (np.arange(len(rates_per_s)) + 0.5) * bin_s
    at = (np.arange(len(rates_per_s) * bin_s // step_s) + 0.5) * step_s
    return np.stack([np.interp(at, middles, column) for column in rates_per_s.T], axis=1)
