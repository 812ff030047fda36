"""Loads of the last day and a half, the paths that the load may follow, and the grid of steps that both lie on.

A step is ``STEP_S`` long and numbered from the epoch on, so that every job has its hours and days at the same numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats

STEP_S: Final = 300
DAY: Final = 288
AHEAD: Final = 96  # steps that a path reaches ahead: eight hours
KEPT: Final = DAY + AHEAD + 16  # loads that are kept
SOURCES: Final = ("champion", "yesterday", "profile")
CHAMPION, YESTERDAY, PROFILE = range(3)
_HALF: Final = 6  # the profile is smoothed over 65 minutes
_PROFILE_DAYS: Final = 7
LEAST_PER_S: Final = 1e-9


def push_loads(loads: Floats, logs: Floats) -> Floats:
    """Return (..., ``KEPT``) log loads with newer ones at the end."""
    return np.concatenate([loads, logs], axis=-1)[..., -loads.shape[-1] :]


def update_profile(profile: Floats, loads: Floats, at: int, known: int) -> None:
    """Move the usual day towards the smoothed load of half an hour ago; a day of it weighs a seventh at least.

    An entry changes only after its time has passed, so what it said of a step stays what it was before.

    Args:
        profile: (..., ``DAY``) log load by time of day, NaN where it was never seen; changed.
        loads: (..., ``KEPT``) log loads, the newest last.
        at: number of the newest step.
        known: steps that were seen so far.
    """
    width = 2 * _HALF + 1
    if known < width:
        return
    place, mean = (at - _HALF) % DAY, np.log(np.exp(loads[..., -width:]).mean(axis=-1))
    weight = 1.0 / min(known // DAY + 1, _PROFILE_DAYS)
    before = profile[..., place]
    moved = np.log((1 - weight) * np.exp(before) + weight * np.exp(mean))
    profile[..., place] = np.where(np.isnan(before), mean, moved)


def list_paths(loads: Floats, profile: Floats, at: int, known: int, champion: Floats | None) -> Floats:
    """Return (..., S, 1 + ``AHEAD``) log load of each source at the newest step and after it.

    A source that says nothing yet holds the newest load.

    Args:
        loads: (..., ``KEPT``) log loads, the newest last.
        profile: (..., ``DAY``) log load by time of day.
        at: number of the newest step.
        known: steps that were seen so far.
        champion: (1 + ``AHEAD``,) log of the forecast's median; None without a usable one.
    """
    paths = np.empty((*loads.shape[:-1], len(SOURCES), AHEAD + 1))
    paths[...] = loads[..., -1, None, None]
    if champion is not None:
        paths[..., CHAMPION, :] = champion
    if known > DAY:
        first = loads.shape[-1] - 1 - DAY
        paths[..., YESTERDAY, :] = loads[..., first : first + AHEAD + 1]
    usual = profile[..., (at + np.arange(AHEAD + 1)) % DAY]
    if known > DAY and not np.isnan(usual).any():
        paths[..., PROFILE, :] = usual
    return paths
