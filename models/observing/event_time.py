"""Event time: how far the watermarks at a job's ends have come tells what a source without backlog has not taken in.

Operators that end a job have processed what happened before their least watermark W.  The time since W, less what it is
while the job keeps up, is the age of the records that they process.  In a second of event time as many records happen
as arrive in one of the clock, so that what went through in so much event time tells what arrives:

    arriving = records through the job / event time that passed       whether the job falls behind or catches up
"""

from __future__ import annotations

import numpy as np

from models.arrays import Bools, Floats
from models.topology.exchanges import Feeders

_OVER_S = 60.0
"""What arrives is counted over so long, as Flink's own means are."""
_PACE_WITHIN = 0.1
"""While a job keeps up, event time passes as the clock does, within this share; else it is of no use."""
_LEAST_PACE = 0.05
"""Event time that passes more slowly stands still: nothing is told of what arrives."""


def find_watermarks_s(at_s: Floats, watermark_ms: Floats, feeders: Feeders) -> Floats:
    """Return (P,) the least watermark of the operators that end a job, epoch seconds; NaN where one has none.

    Of P polls, with (P, O) watermarks of the operators' inputs; Flink has its least number where there is none yet.
    """
    ends = sorted({*range(len(feeders))} - {one for others in feeders for one in others})
    with np.errstate(invalid="ignore"):
        is_known = (watermark_ms > 0) & (watermark_ms <= 1000.0 * at_s[:, None])
    return np.asarray(np.where(is_known, watermark_ms, np.nan)[:, ends].min(axis=1)) / 1000.0


def measure_event_time(at_s: Floats, watermark_s: Floats, through: Floats, is_quiet: Bools) -> tuple[Floats, Floats]:
    """Return (P,) the age of records, s, and (P,) the records/s that arrive; NaN where event time does not tell.

    Args:
        at_s: (P,) ascending.
        watermark_s: (P,) of :func:`find_watermarks_s`.
        through: (P,) records of the source that are through the job, since the attempt began.
        is_quiet: (P,) whether every operator had idle time since the poll before: the job keeps up.
    """
    result = np.full((2, len(at_s)), np.nan)
    known = np.flatnonzero(np.isfinite(watermark_s + through))
    times_s, mark_s, count, quiet = at_s[known], watermark_s[known], through[known], is_quiet[known]
    at_rest = quiet[1:] & quiet[:-1]
    rest_s, passed_s = (np.diff(values)[at_rest].sum() for values in (times_s, mark_s))
    if rest_s < _OVER_S or abs(passed_s - rest_s) > _PACE_WITHIN * rest_s:
        return result[0], result[1]
    lag_s = times_s - mark_s
    result[0, known] = np.maximum(lag_s - np.median(lag_s[quiet]), 0.0)
    before = np.maximum(np.searchsorted(times_s, times_s - _OVER_S, side="right") - 1, 0)
    event_s, more = mark_s - mark_s[before], count - count[before]
    runs = np.cumsum(np.diff(count, prepend=count[:1]) < 0)
    moves = (event_s > _LEAST_PACE * (times_s - times_s[before])) & (more > 0) & (runs == runs[before])
    result[1, known[moves]] = more[moves] / event_s[moves]
    return result[0], result[1]
