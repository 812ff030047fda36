"""The champion of a series: the incumbent, until another method is clearly better.

The shares of days below were chosen by hand on the traces of data/traces.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints

MIN_DAYS = 3
"""A challenger is considered after this many days on which both could be scored."""
WON_SHARE = 0.85
"""A challenger must also have been better on this share of those days: one strange day makes no champion."""


RETAINED_SHARE = 0.75
"""A champion that beats the first method on fewer of the days is replaced."""


def choose_champions(losses: Floats, incumbent: Ints, margin: float) -> Ints:
    """Return the index of each series' champion, shape (n,).

    A challenger is compared with the incumbent on the days where both have a score.  The best challenger that beats
    it by more than the margin, and on most of the days, takes its place; the registry's order breaks ties.  The first
    method, the blend of all, is the safest: it becomes champion again once the champion is no longer better than it on
    most of the days.

    Args:
        losses: per method, day and series, shape (M, D, n); NaN where a method was not scored.
        incumbent: index of the present champion, shape (n,).
        margin: share by which a challenger's loss has to be lower.
    """
    methods, _, n = losses.shape
    champion_losses = np.take_along_axis(losses, incumbent[None, None, :], axis=0)[0]
    ratio = np.ones((methods, n))
    for index in range(methods):
        both = np.isfinite(losses[index]) & np.isfinite(champion_losses)
        own = np.where(both, losses[index], 0.0).sum(axis=0)
        other = np.where(both, champion_losses, 0.0).sum(axis=0)
        days = both.sum(axis=0)
        won = (both & (losses[index] < champion_losses)).sum(axis=0)
        known = (days >= MIN_DAYS) & (other > 0) & (won >= WON_SHARE * days)
        ratio[index] = np.where(known, own / np.where(known, other, 1.0), 1.0)
    ratio[incumbent, np.arange(n)] = 1.0
    best = np.argmin(ratio, axis=0)
    chosen = np.where(ratio[best, np.arange(n)] < 1.0 - margin, best, incumbent)
    # The first method replaces a champion that no longer beats it on most of the days.
    mine = np.take_along_axis(losses, chosen[None, None, :], axis=0)[0]
    both = np.isfinite(mine) & np.isfinite(losses[0])
    lost = (both & (losses[0] < mine)).sum(axis=0) > (1 - RETAINED_SHARE) * both.sum(axis=0)
    return np.where(lost & (both.sum(axis=0) >= MIN_DAYS), 0, chosen)
