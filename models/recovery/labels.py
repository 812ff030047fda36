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

    All are (n,). Records were emitted by the sources since RUNNING until a poll, wait then, and waited before the stop,
    where NaN counts as none; ``since_stop_s`` is from the stop until the poll; ``replay_s`` is input that was read a
    second time, in seconds of it; loads were measured before the stop and after the start. NaN is not known.
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

    ``shown_s`` is from RUNNING until the poll that shows it, before which nothing was seen for ``unseen_s``; records
    were emitted since RUNNING, and wait at the poll; the load is around the event, the capacity what the job sustains
    after it. It has caught up below an age of the oldest record: so many seconds of its load are left.
    """
    backlog = emitted - load_per_s * shown_s + pending
    with np.errstate(invalid="ignore", divide="ignore"):
        drained_s = (backlog - caught_up_lag_s * load_per_s) / (capacity_per_s - load_per_s)
    is_known = np.isfinite(drained_s) & (capacity_per_s > load_per_s) & np.isfinite(unseen_s)
    result = np.clip(np.where(is_known, drained_s, shown_s), shown_s - np.where(is_known, unseen_s, 0.0), shown_s)
    return np.asarray(result), np.where(is_known, 0.0, np.where(np.isfinite(unseen_s), unseen_s, shown_s))
