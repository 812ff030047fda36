"""What the backlog tells of a job's capacity: one scalar Kalman filter.

A job that is never idle in a window of w seconds processes C = L + (B - B') / w of the load L, B and B' the records
that wait at its begin and end: the backlog that came is a measurement of the capacity, against the one that the models
gave.  Where no backlog is left, C is at least that.  What is estimated is b = log(C / model); it returns to 0 as the
models learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from models.programme.load_paths import STEP_S

_KEEP: Final = 0.5 ** (1 / 72)  # per step: half of an error is gone after six hours
_NOISE: Final = 0.03  # of a step's measurement: load and capacity vary within a window
_BACKLOG_S: Final = 15.0  # of the load: fewer records wait anyhow
_LEAST_DOUBT: Final = 0.02
_MOST: Final = 0.5
_LEAST_RATIO: Final = 0.2


@dataclass(frozen=True, slots=True)
class CapacityBelief:
    """What is believed of the models' error.

    Attributes:
        error: b.
        share: variance of b, as a share of the models' own.
        seen_until_s: end of the last window that was measured, epoch seconds.
    """

    error: float = 0.0
    share: float = 1.0
    seen_until_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BacklogChange:
    """A window in which nothing else disturbed the job.

    Attributes:
        begin, end: records that wait at its begin and end.
        window_s: its length.
        load_per_s: what arrived.
        until_s: its end, epoch seconds.
    """

    begin: float
    end: float
    window_s: float
    load_per_s: float
    until_s: float


def measure_capacity_error(
    belief: CapacityBelief, changes: Sequence[BacklogChange], model_per_s: float, doubt: float
) -> CapacityBelief:
    """Return the belief after windows of the running size, by time; those that were measured before are passed over.

    The models expect ``model_per_s`` of it, records/s of all sources, with a relative deviation, ``doubt``.
    """
    error, share = belief.error, belief.share
    variance = max(doubt, _LEAST_DOUBT) ** 2
    until_s = belief.seen_until_s
    for one in changes:
        if one.until_s <= belief.seen_until_s or one.load_per_s <= 0 or model_per_s <= 0:
            continue
        steps = one.window_s / STEP_S
        keep = _KEEP**steps
        error, share = error * keep, 1.0 - (1.0 - share) * keep**2
        processed = one.load_per_s + (one.begin - one.end) / one.window_s
        measured = math.log(max(processed / model_per_s, _LEAST_RATIO))
        is_known = one.end >= _BACKLOG_S * one.load_per_s  # else the capacity was at least that
        if is_known or measured > error:
            spread = share * variance
            gain = spread / (spread + _NOISE**2 / steps)
            error, share = error + gain * (measured - error), share * (1.0 - gain)
        until_s = one.until_s
    return CapacityBelief(round(min(max(error, -_MOST), _MOST), 4), round(share, 4), until_s)
