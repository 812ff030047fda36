"""What the law of a job's load expects of a whole day: its outlook, continued along the path that it follows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.error_shapes import cumulate
from models.programme.hypotheses import SOURCE, expect_path
from models.programme.law_state import LEADS, LawState
from models.programme.load_law import Champion, choose_hypothesis
from models.programme.load_outlook import LoadOutlook, LoadReference, look_ahead
from models.programme.load_paths import AHEAD, CHAMPION, DAY, LEAST_PER_S, PROFILE, YESTERDAY

_NEAR: Final = 24
"""Steps that the hypothesis of the next hours is for: its errors were compared up to two hours ahead."""
_FAR: Final = 48
"""Steps from which on it is the one with the least errors four and eight hours ahead."""
_FAR_PLACES: Final = [LEADS.index(_FAR), LEADS.index(AHEAD)]


def look_ahead_day(state: LawState, champion: Champion, forecast_per_s: Floats | None) -> LoadOutlook:
    """Return what is expected of the ``DAY`` steps after the newest one.

    The first two hours are those of :func:`models.programme.load_outlook.look_ahead`.  A level that is held is right
    for them and wrong for a day: from four hours on it is what was least wrong so far ahead, and in between both.
    ``forecast_per_s``, (1 + ``DAY``,), has the forecast's medians from the newest step on; None without a usable one.
    """
    near = look_ahead(state, champion)
    scale, best = choose_hypothesis(state)
    far = _choose_far(state, scale, best)
    mean = _expect(state, scale, best, near.offset, forecast_per_s)
    mean = np.concatenate([near.mean, mean[AHEAD:] + near.mean[-1] - mean[AHEAD - 1]])
    sd = np.concatenate([near.sd, np.full(DAY - AHEAD, near.sd[-1])])
    if far == best:
        return replace(near, mean=mean, sd=sd)
    share = np.clip((np.arange(1, DAY + 1) - _NEAR) / (_FAR - _NEAR), 0.0, 1.0)
    squares = np.interp(np.arange(1, DAY + 1), LEADS, state.squares[scale, far])
    mean = (1 - share) * mean + share * _expect(state, scale, far, near.offset, forecast_per_s)
    sd = (1 - share) * sd + share * np.minimum(sd, np.sqrt(squares))
    later = LoadReference.of(far, _continue_path(state, int(SOURCE[far]), forecast_per_s))
    return replace(near, mean=mean, sd=np.maximum.accumulate(sd), later=later)


def _choose_far(state: LawState, scale: int, best: int) -> int:
    """Return the hypothesis with the least errors far ahead; the best of the next hours where none has less."""
    far = np.log(state.squares[scale][:, _FAR_PLACES]).mean(axis=1)
    least = int(far.argmin())
    return least if far[least] < far[best] else best


def _expect(state: LawState, scale: int, which: int, offset: float, forecast_per_s: Floats | None) -> Floats:
    """Return (``DAY``,) E[y] of a hypothesis."""
    path = np.log(np.exp(_continue_path(state, int(SOURCE[which]), forecast_per_s)) + offset)
    return expect_path(which, float(state.level[scale, which]), path)


def _continue_path(state: LawState, source: int, forecast_per_s: Floats | None) -> Floats:
    """Return (1 + ``DAY``,) log load of a source; one that says nothing yet holds the newest load."""
    if source == CHAMPION and forecast_per_s is not None:
        return np.log(np.maximum(forecast_per_s, LEAST_PER_S))
    if source == YESTERDAY and state.seen > DAY:
        return state.loads[-1 - DAY :]
    usual = state.profile[(state.newest + np.arange(DAY + 1)) % DAY]
    if source == PROFILE and state.seen > DAY and not np.isnan(usual).any():
        return usual
    return np.full(DAY + 1, state.loads[-1])


def look_from(outlook: LoadOutlook, first: int) -> LoadOutlook:
    """Return an outlook from a later step on, with what is known of it now."""
    followed = outlook.later if outlook.later is not None and first >= (_NEAR + _FAR) // 2 else outlook.followed
    return replace(outlook, mean=outlook.mean[first:], sd=outlook.sd[first:], followed=followed)


def find_late_chance(outlook: LoadOutlook, steps: int, capacity_per_s: float, sd: float) -> float:
    """Return the highest probability in the next steps that the load exceeds a capacity, with caution.

    ``sd`` is the relative deviation of a step's load from its level, and of what is not known of the capacity.
    """
    spread = np.hypot(outlook.sd[:steps], sd * capacity_per_s / (capacity_per_s + outlook.offset))
    at = (math.log(capacity_per_s + outlook.offset) - outlook.mean[:steps]) / spread
    return float(1.0 - np.interp(at, *cumulate(outlook.shape)).min())
