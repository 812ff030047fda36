"""Standing backlog: records that a source reports as pending and that nobody can read.

They lie behind an open transaction, in a topic or cluster that is gone, or in partitions that nobody was given.  A
source with records to read has no idle time, so a backlog that lasts while its source has some is none that slots work
off, as far as it does not fall.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.observing.source_rates import GROWTH_ABOVE
from models.observing.windows import BACKPRESSURED_ABOVE
from models.topology.edges import NO_IDLE

_IN_A_ROW = 3
"""So many figures in a row tell that a backlog stands: a burst that has just come is of one."""


def find_standing(pending: Floats, taken: Floats, has_idle_time: Bools) -> Floats:
    """Return (N,) how much of a backlog stands, of N polls or windows of a source in order of time.

    What stood once stands until the backlog falls below it.

    Args:
        pending: (N,) records at the end of each; NaN where it is not known, and nothing stands.
        taken: (N,) records taken in during each.
        has_idle_time: (N,) whether every subtask had idle time, and none was backpressured.
    """
    if not len(pending):
        return np.zeros(0)
    fallen = np.diff(pending, prepend=np.nan) < -GROWTH_ABOVE * np.nan_to_num(taken)
    lasts = np.where(has_idle_time & ~fallen & np.isfinite(pending), pending, np.nan)
    padded = np.concatenate((np.full(_IN_A_ROW - 1, np.nan), lasts))
    lowest = np.lib.stride_tricks.sliding_window_view(padded, _IN_A_ROW).min(axis=1)  # NaN unless all of them last
    known = np.where(np.isnan(lowest), 0, np.arange(1, len(pending) + 1))
    level = np.concatenate((np.zeros(1), lowest))[np.maximum.accumulate(known)]
    with np.errstate(invalid="ignore"):
        return np.where(pending >= level, level, 0.0)


def have_idle_time(idle_share: Floats, busiest_share: Floats, backpressured_share: Floats) -> Bools:
    """Return whether every subtask had idle time, and none was backpressured; what is not known had none.

    Args:
        idle_share: of the time of a mean subtask, 0..1, of any shape.
        busiest_share: busy share of the busiest subtask.
        backpressured_share: of the time of a mean subtask.
    """
    with np.errstate(invalid="ignore"):
        rested = (idle_share >= NO_IDLE) & (busiest_share <= 1.0 - NO_IDLE)
        return np.asarray(rested & (backpressured_share <= BACKPRESSURED_ABOVE))
