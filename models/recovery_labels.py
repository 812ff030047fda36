"""What a recovery took, from polls: the end of a catch-up lies between two of them, and the records tell where.

    B = emitted - load t + pending     backlog when the job ran again: what had to be processed besides the load
    t                                  from then until the poll that shows the job caught up
    catch-up = (B - limit load) / (capacity - load), within the polls between which it ended

B needs no assumption about the downtime, and the capacity is the one measured after the event.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats


def find_catch_up_s(
    *,
    shown_s: Floats,
    unseen_s: Floats,
    emitted: Floats,
    pending: Floats,
    load_per_s: Floats,
    capacity_per_s: Floats,
    caught_up_lag_s: float,
) -> tuple[Floats, Floats]:
    """Return catch-ups, s, and for how long before it each may have ended; all (n,), NaN where it was not seen.

    Args:
        shown_s: from RUNNING until the poll that shows it.
        unseen_s: before that poll nothing was seen for so long.
        emitted: records that the sources emitted since RUNNING.
        pending: records that wait at the poll.
        load_per_s: records/s that arrive around the event.
        capacity_per_s: records/s that the job sustains after it.
        caught_up_lag_s: backlog in seconds of input below which a job has caught up.
    """
    backlog = emitted - load_per_s * shown_s + pending
    with np.errstate(invalid="ignore", divide="ignore"):
        drained_s = (backlog - caught_up_lag_s * load_per_s) / (capacity_per_s - load_per_s)
    is_known = np.isfinite(drained_s) & (capacity_per_s > load_per_s) & np.isfinite(unseen_s)
    found = np.clip(np.where(is_known, drained_s, shown_s), shown_s - np.where(is_known, unseen_s, 0.0), shown_s)
    return np.asarray(found), np.where(is_known, 0.0, np.where(np.isfinite(unseen_s), unseen_s, shown_s))
