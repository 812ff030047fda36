"""For how long an operator held up what feeds it: then it did all it can, whatever its mean subtask was busy.

Capacity is rate / busy share (Eq. 5 of DS2) of a mean subtask.  Where the load is skewed, the full subtasks hold up the
operators before them while others are idle, and the mean says that there is room.  With keys whose heat moves on, not
even the busiest subtask over a window tells it.  What the operators before it were backpressured for does: in a share
b of the time the operator was at its limit, so that it can process at most rate / b.

Deviation: DS2 and ContTune take the useful time alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.arrays import Floats

_FREE: Final = 0.1
"""An operator that is backpressured for a larger share is held up itself; Flink's web interface calls it so too."""
_AT_WORK: Final = 0.5
"""One that is busy for less does not hold up others by what it computes: a network or a disk does."""
SATURATED: Final = 0.9
"""From this share on an operator was at its limit throughout: what it did is what it can do."""
CLEAR: Final = 0.05
"""Shares of time differ by less for the times at which they are read."""


def find_held_up_share(upstream: Sequence[Sequence[int]], busy: Floats, backpressured: Floats) -> Floats:
    """Return (W, O) the share of time in which an operator held up one that feeds it alone; 0 where it did not.

    Args:
        upstream: for each of O operators the places of those that feed it.
        busy: (W, O) share of its time that a mean subtask works, NaN where it is not known.
        backpressured: (W, O) share for which it is held up itself, likewise.
    """
    result = np.zeros(busy.shape)
    fed = [{place for place, one in enumerate(upstream) if feeder in one} for feeder in range(len(upstream))]
    for place, feeders in enumerate(upstream):
        for feeder in set(feeders):
            if fed[feeder] == {place}:  # of several that it feeds, any may be the one
                result[:, place] = np.fmax(result[:, place], backpressured[:, feeder])
    with np.errstate(invalid="ignore"):
        is_limit = (busy >= _AT_WORK) & ~(backpressured > _FREE)
    return np.where(is_limit, np.nan_to_num(result), 0.0)
