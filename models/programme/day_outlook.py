"""What the law of a job's load expects of a whole day: its outlook, continued along the path that it follows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from models.arrays import Floats
from models.programme.error_shapes import cumulate
from models.programme.hypotheses import SOURCE, expect_path
from models.programme.law_state import LawState
from models.programme.load_law import Champion, choose
from models.programme.load_outlook import LoadOutlook, look_ahead
from models.programme.load_paths import AHEAD, CHAMPION, DAY, LEAST_PER_S, PROFILE, YESTERDAY


def look_ahead_day(state: LawState, champion: Champion, forecast_per_s: Floats | None) -> LoadOutlook:
    """Return what is expected of the ``DAY`` steps after the newest one.

    The first ``AHEAD`` are those of :func:`models.programme.load_outlook.look_ahead`; from there on the mean follows
    the same path, and the spread stays.

    Args:
        state: of the law.
        champion: the newest forecast.
        forecast_per_s: (1 + ``DAY``,) its medians from the newest step on; None without a usable one.
    """
    near = look_ahead(state, champion)
    scale, best = choose(state)
    path = np.log(np.exp(_continue_path(state, int(SOURCE[best]), forecast_per_s)) + near.offset)
    mean = expect_path(best, float(state.level[scale, best]), path)
    later = mean[AHEAD:] + near.mean[-1] - mean[AHEAD - 1]
    spread = np.concatenate([near.sd, np.full(DAY - AHEAD, near.sd[-1])])
    return replace(near, mean=np.concatenate([near.mean, later]), sd=spread)


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
    return replace(outlook, mean=outlook.mean[first:], sd=outlook.sd[first:])


def find_late_chance(outlook: LoadOutlook, steps: int, capacity_per_s: float, sd: float) -> float:
    """Return the highest probability in the next steps that the load exceeds a capacity.

    Args:
        outlook: of the load.
        steps: how many.
        capacity_per_s: with caution.
        sd: relative deviation of a step's load from its level, and of what is not known of the capacity.
    """
    spread = np.hypot(outlook.sd[:steps], sd * capacity_per_s / (capacity_per_s + outlook.offset))
    at = (math.log(capacity_per_s + outlook.offset) - outlook.mean[:steps]) / spread
    return float(1.0 - np.interp(at, *cumulate(outlook.shape)).min())
