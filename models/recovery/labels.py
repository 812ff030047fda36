"""What a recovery took, from polls: the end of a catch-up lies between two of them, and the records tell where.

    B = emitted - load t + pending     backlog when the job ran again: what had to be processed besides the load
    t                                  from then until the poll that shows the job caught up
    catch-up = (B - limit load) / (capacity - load), within the polls between which it ended

B needs no assumption about the downtime, and the capacity is the one measured after the event.

The same records tell the load: what arrived from the stop until that poll is what was emitted and waits then, without
what had waited before the stop and what was read a second time.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats

MOST_CHANGE = 1.25
"""Beyond the loads before and after by this factor, records were read again that no checkpoint tells of."""


def count_load_per_s(
    *,
    emitted: Floats,
    pending: Floats,
    pending_before: Floats,
    since_stop_s: Floats,
    replay_s: Floats,
    before_per_s: Floats,
    after_per_s: Floats,
) -> Floats:
    """Return the mean load of a recovery, (n,) records/s: by count, else the mean of those before and after.

    Args:
        emitted: (n,) records that the sources emitted since RUNNING, until a poll; NaN where it is not known.
        pending: (n,) records that wait at the poll.
        pending_before: (n,) records that waited before the stop; NaN counts as none.
        since_stop_s: (n,) from the stop until the poll.
        replay_s: (n,) input that was read a second time, in seconds of it; NaN where it is not known.
        before_per_s: (n,) load measured before the stop; NaN where it is not known.
        after_per_s: (n,) load measured after the start; NaN where it is not known.
    """
    before = np.where(np.isfinite(before_per_s), before_per_s, after_per_s)
    after = np.where(np.isfinite(after_per_s), after_per_s, before_per_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        counted = (emitted + pending - np.nan_to_num(pending_before)) / (since_stop_s + replay_s)
    within = np.clip(counted, np.minimum(before, after) / MOST_CHANGE, np.maximum(before, after) * MOST_CHANGE)
    return np.asarray(np.where(np.isfinite(within), within, 0.5 * (before + after)))


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
        caught_up_lag_s: age of the oldest record below which a job has caught up: so many seconds of its load are left.
    """
    backlog = emitted - load_per_s * shown_s + pending
    with np.errstate(invalid="ignore", divide="ignore"):
        drained_s = (backlog - caught_up_lag_s * load_per_s) / (capacity_per_s - load_per_s)
    is_known = np.isfinite(drained_s) & (capacity_per_s > load_per_s) & np.isfinite(unseen_s)
    result = np.clip(np.where(is_known, drained_s, shown_s), shown_s - np.where(is_known, unseen_s, 0.0), shown_s)
    return np.asarray(result), np.where(is_known, 0.0, np.where(np.isfinite(unseen_s), unseen_s, shown_s))
