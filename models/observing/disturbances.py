"""Times in which what is measured of a job tells nothing of its work, and the windows that they touch.

A task that starts counts as busy, and its gauges show their first value: no measurement of its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from models.arrays import Floats, Ints

# A job that came to run this shortly before its first reply started then.
_FRESH_START_S = 60


def is_fresh_start(first_polled_ms: int, first_running_ms: int) -> bool:
    """Return whether a job had not run for long when it was first polled: then it started within the data."""
    return first_polled_ms // 1000 - first_running_ms // 1000 <= _FRESH_START_S


def find_restores(replies: Iterable[tuple[int, bool]]) -> Iterator[tuple[int, int]]:
    """Yield when tasks of a running job did not work yet: from a reply that shows it until the next without such.

    Args:
        replies: time of a reply, and whether it shows a running job with such tasks, in order of time; of those alike
            in a row the first and the last do.
    """
    began = last = None
    for at, is_restoring in replies:
        last = at
        if is_restoring and began is None:
            began = at
        elif not is_restoring and began is not None:
            yield began, at
            began = None
    if began is not None and last is not None:
        yield began, last


def find_disturbed_spans(
    started_s: Ints, ended_s: Floats, window_s: Ints, *, settle_s: int, until_s: int
) -> tuple[Ints, Ints]:
    """Return (n,) the start of the first window that each event disturbs, and (n,) the last second, epoch s.

    Every window that starts from the first of the two until the second is disturbed: from a stop until ``settle_s``
    after the job runs again, or until ``until_s`` where it is down, of which the end is NaN.  Starts are whole seconds.
    """
    settled = np.where(np.isnan(ended_s), float(until_s), np.nan_to_num(ended_s) + settle_s).astype(np.int64)
    return started_s - started_s % window_s, np.maximum(started_s, settled)
