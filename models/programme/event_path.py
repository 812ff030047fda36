"""Events that people know of in the law of a job's load: it learns the load without them, and they are put back on.

    y = log(load + c)        y'_h = log( f_h (exp(y_h) - c) + c )

f is what an event makes of the load.  What its people are uncertain of widens the steps that lie on the other side of
its begin or end: within it the measured height tells.  Nobody knows to the minute when it begins: it is prepared for a
step before and kept for a step after, and the step with which it begins or ends tells nothing of the load's height.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import LEAST_PER_S, STEP_S
from models.scheduling.figures import format_clock

_NOTED: Final = 0.01


@dataclass(frozen=True, slots=True)
class EventPath:
    """What events make of a load in H steps, as it is prepared for.

    Attributes:
        factor: (H,) the load with them over the one without; of a step and those beside it the largest.
        spread: (H,) standard deviation of its logarithm, likewise; of the first step that of the one before, from
            which the height of the load is known.
    """

    factor: Floats
    spread: Floats

    @classmethod
    def widen(cls, factor: Floats, spread: Floats) -> EventPath:
        """Return the path of the inner steps of (H + 2,) factors and spreads."""
        both = [np.maximum(np.maximum(one[:-2], one[1:-1]), one[2:]) for one in (factor, spread)]
        both[1][0] = spread[0]
        return cls(*both)


@dataclass(frozen=True, slots=True)
class EventChange:
    """What events make of one step that was measured.

    Attributes:
        factor: the load with them over the one without.
        is_edge: whether it begins or ends with the step, so that its load tells little.
    """

    factor: float = 1.0
    is_edge: bool = False


def raise_outlook(outlook: LoadOutlook, path: EventPath | None, newest: int) -> LoadOutlook:
    """Return an outlook with the events of its time: the path, (1 + H,), begins with the newest step."""
    if path is None or not (np.abs(np.log(np.maximum(path.factor, LEAST_PER_S))) > _NOTED).any():
        return outlook
    factor, count = path.factor[1:], len(outlook.mean)
    before = np.maximum(np.exp(outlook.mean) - outlook.offset, LEAST_PER_S)
    after = factor[:count] * before
    mean = np.log(after + outlook.offset)
    # The slope of y' over y, and what is not known of the factor.
    slope = factor[:count] * np.exp(outlook.mean - mean)
    unknown = np.sqrt(np.abs(path.spread[1 : 1 + count] ** 2 - path.spread[0] ** 2)) * after / (after + outlook.offset)
    event = _describe(path.factor, newest)
    return replace(outlook, mean=mean, sd=np.hypot(slope * outlook.sd, unknown), event=event)


def _describe(factor: Floats, newest: int) -> str:
    """Return what events make of the load, of the first time in which they do."""
    away = np.abs(np.log(np.maximum(factor, LEAST_PER_S))) > _NOTED
    first = int(away.argmax())
    lasts = int(away[first:].argmin()) or len(away) - first
    inside = factor[first : first + lasts]
    most = float(inside[np.abs(np.log(np.maximum(inside, LEAST_PER_S))).argmax()])
    begin_s, end_s = (newest + first) * STEP_S, (newest + first + lasts) * STEP_S
    begin = "" if first == 0 else f"from {format_clock(begin_s, newest * STEP_S)} "
    return f"an event makes it {most:.2g} times as high {begin}to {format_clock(end_s, newest * STEP_S)}"
