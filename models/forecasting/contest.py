"""The contest of the methods for a series: who said what from which origin, what came, and who speaks next.

One implementation for the stage, which looks at many series from one moment, and for replays, which look at one series
from many moments (`models/forecasting/rolling.py`).

    P origins (ascending), M methods (the blend first, when there are two or more), n series, H bins of horizon,
    L levels, G groups of leads
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.forecasting import blend
from models.forecasting.calendar import Calendar
from models.forecasting.calibration import Calibration
from models.forecasting.error_scale import scale, shape

QUANTILES = (0.1, 0.5, 0.9, 0.95)
MIDDLE = QUANTILES.index(0.5)
OFFSET_LEVELS = np.array([level for level in QUANTILES if level != 0.5])
MIN_SEEN_SHARE = 0.5
"""A day counts for a series when at least this share of the bins that were foretold in it was measured."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The record of the methods at P origins.

    Attributes:
        calendar: of the bins.
        names: of the methods.
        at: origins, shape (P,).
        predicted: middles, records/s, shape (M, P, n, H), NaN where a method had nothing to say.
        seen: what came, shape (P, n, H), NaN where it is unknown.
        offsets: of OFFSET_LEVELS, in units of an error's scale, shape (M, P, L - 1, n, G), NaN where not known.
        proportion: how far errors grow with what was foretold, shape (M, P, n).
        calibrations: of the methods, as of the last origin.
    """

    calendar: Calendar
    names: tuple[str, ...]
    at: Ints
    predicted: Floats
    seen: Floats
    offsets: Floats
    proportion: Floats
    calibrations: tuple[Calibration, ...]

    def quantiles(self, place: int, champion: Ints) -> Floats:
        """Return the champions' quantiles from one origin, records/s, ordered and >= 0, shape (L, n, H)."""
        series = np.arange(len(champion))
        middle = self.predicted[champion, place, series]
        spread = self.calibrations[0].spread(self.offsets[champion, place, :, series].transpose(1, 0, 2))
        return ordered(middle, spread * scale(shape(middle), self.proportion[champion, place, series]))

    def losses(self, now: int, days: int) -> Floats:
        """Return what each method lost per day before ``now``, records/s, shape (M, days, n), NaN where not scored.

        It is the pinball loss of q50 and q90 together, over all bins of a day and all origins that foretold them.
        """
        return np.asarray(self.scores(now, days)[0])

    def scores(self, now: int, days: int) -> Floats:
        """Return loss, absolute error, pinball loss of q90 and share covered by it, per day, shape (4, M, days, n)."""
        day, horizon = self.calendar.day, self.predicted.shape[3]
        target = self.at[:, None] + np.arange(horizon)
        ago = np.where(target < now, (now - 1 - target) // day, days)
        rows = np.flatnonzero((ago < days).any(axis=1))
        seen, ago = self.seen[rows], ago[rows]
        found = np.full((4, len(self.names), days, seen.shape[1]), np.nan)
        place_q90 = int(np.flatnonzero(OFFSET_LEVELS == 0.9)[0])
        for method, calibration in enumerate(self.calibrations):
            error = seen - self.predicted[method, rows]
            scales = scale(shape(self.predicted[method, rows]), self.proportion[method, rows])
            above = error - calibration.spread(self.offsets[method, rows, place_q90]) * scales
            pinball = np.maximum(0.9 * above, -0.1 * above)
            scored = np.isfinite(above).astype(np.float64)
            parts = np.stack([0.5 * np.abs(error) + pinball, np.abs(error), pinball, above <= 0])
            parts = np.where(scored > 0, parts, 0.0)
            for back in range(days):
                mine = (ago == back).astype(np.float64)
                count = np.einsum("pnh,ph->n", scored, mine)
                predicted = mine.sum()
                enough = count >= max(1.0, MIN_SEEN_SHARE * predicted)
                total = np.einsum("kpnh,ph->kn", parts, mine)
                found[:, method, back] = np.where(enough, total / np.maximum(count, 1), np.nan)
        return found


def hold_contest(
    calendar: Calendar, names: Sequence[str], predicted: Floats, *, seen: Floats, at: Ints, look_back: int
) -> Contest:
    """Blend and calibrate what the methods said, in the order of their registry.

    Args:
        calendar: of the bins.
        names: of the methods.
        predicted: middles, records/s, shape (M, P, n, H), NaN where a method had nothing to say.
        seen: what came, shape (P, n, H), NaN where it is unknown.
        at: origins, ascending, shape (P,).
        look_back: bins before a day whose origins it learns from.
    """
    names, predicted = with_blend(names, predicted, seen=seen, at=at, calendar=calendar, look_back=look_back)
    calibrations = tuple(Calibration(OFFSET_LEVELS, predicted.shape[2], calendar, predicted.shape[3]) for _ in names)
    made = [each.by_day(seen - own, own, at, look_back) for each, own in zip(calibrations, predicted, strict=True)]
    offsets, proportion = np.stack([one.size for one in made]), np.stack([one.proportion for one in made])
    return Contest(calendar, tuple(names), at, predicted, seen, offsets, proportion, calibrations)


def ordered(middle: Floats, spread: Floats) -> Floats:
    """Return quantiles >= 0 from a middle (n, H) and the offsets of the others (L - 1, n, H), shape (L, n, H)."""
    others = middle + spread
    lower, upper = np.minimum(others[:MIDDLE], middle), np.maximum(others[MIDDLE:], middle)
    paths = np.concatenate([lower, middle[None], upper])
    return np.asarray(np.maximum.accumulate(np.maximum(paths, 0.0), axis=0))


def with_blend(
    names: Sequence[str], predicted: Floats, *, seen: Floats, at: Ints, calendar: Calendar, look_back: int
) -> tuple[tuple[str, ...], Floats]:
    """Put the blend of two or more methods in front of them; arguments as in :func:`blend.blended`."""
    if len(names) == 1:
        return tuple(names), predicted
    mixed = blend.blended(predicted, seen, at, calendar, look_back)
    return (blend.NAME, *names), np.concatenate([mixed[None], predicted])
