"""The load of a run: the part of a public trace with the steepest rise and fall, and the days before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.arrays import Floats

BIN_S = 300
DAY_S = 86_400
LEAST_DAYS_BEFORE = 5
"""Without so many days before it a window is not chosen: forecasts need a history."""
PEAK_SHARE = 0.8
"""Of what the job carries with all slots, so that a backlog can be worked off at the peak."""


Trace = Sequence[tuple[int, float]]
"""(second, events/s), linear in between."""
NOISE, NOISE_EVERY_S = 0.02, 60


class WindowError(ValueError):
    """A trace that holds no such window; the message says why."""


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """A part of a trace, scaled.

    Attributes:
        first_bin: of the trace.
        rates_per_s: (n + 1,) events/s at every ``BIN_S``, linear in between.
        before_per_s: (m,) events/s of each bin of the trace before it.
    """

    first_bin: int
    rates_per_s: Floats
    before_per_s: Floats

    @property
    def seconds(self) -> int:
        """Length."""
        return (len(self.rates_per_s) - 1) * BIN_S

    @property
    def days_before(self) -> int:
        """Whole days of the trace before it."""
        return len(self.before_per_s) * BIN_S // DAY_S


def find_steepest(values: Floats, bins: int, least_before: int = LEAST_DAYS_BEFORE * DAY_S // BIN_S) -> int:
    """Return the first bin of the window whose rise and fall, the smaller of both, are highest.

    Rise is the peak less the least before it within the window, fall the peak less the least behind it.

    Args:
        values: (n,) of the trace.
        bins: length of the window.
        least_before: bins that must lie before it.

    Raises:
        WindowError: the trace is too short.
    """
    starts = range(least_before, len(values) - bins)
    if not starts:
        raise WindowError(f"{len(values)} bins are too few for {least_before} before a window of {bins}")
    return max(starts, key=lambda first: _measure_steepness(values[first : first + bins + 1]))


def _measure_steepness(window: Floats) -> float:
    peak = int(window.argmax())
    return float(window[peak] - max(window[: peak + 1].min(), window[peak:].min()))


def choose_window(values: Floats, minutes: float, carried_per_s: float) -> LoadWindow:
    """Return the steepest window of a trace, its peak at ``PEAK_SHARE`` of what the job carries.

    Args:
        values: (n,) of the trace, a bin each.
        minutes: length, rounded up to whole bins.
        carried_per_s: events/s that the job carries with all slots.

    Raises:
        WindowError: the trace is too short.
    """
    bins = max(2, int(np.ceil(minutes * 60 / BIN_S)))  # one bin has no rise and fall
    first = find_steepest(values, bins)
    scaled = values * (PEAK_SHARE * carried_per_s / values[first : first + bins + 1].max())
    return LoadWindow(first, scaled[first : first + bins + 1], scaled[:first])


def make_trace(window: LoadWindow, lead_s: int, minutes: float, seed: int) -> list[tuple[int, float]]:
    """Return (second, events/s): the window's first rate for a while, the window with noise, nothing for a day.

    Args:
        window: of the load.
        lead_s: for so long its first rate goes on before it.
        minutes: after which it ends.
        seed: of the noise, a factor for every minute.
    """
    draws, end_s = np.random.default_rng(seed), round(60 * minutes)
    at = np.arange(0, end_s + 1, NOISE_EVERY_S)
    rates = np.interp(at, np.arange(len(window.rates_per_s)) * BIN_S, window.rates_per_s)
    rates *= np.maximum(1.0 + NOISE * draws.standard_normal(len(at)), 0.5)
    points = [(0, float(rates[0]))] if lead_s else []
    points += [(lead_s + int(second), float(rate)) for second, rate in zip(at, rates, strict=True)]
    return [*points, (lead_s + end_s + 1, 0.0), (lead_s + end_s + DAY_S, 0.0)]


def integrate(trace: Trace, start_s: float, end_s: float) -> float:
    """Return the events due between two seconds of a trace, trapezoids between its points."""
    seconds, rates = (np.array(column, float) for column in zip(*trace, strict=True))
    inner = seconds[(seconds > start_s) & (seconds < end_s)]
    at = np.concatenate([[start_s], inner, [end_s]])
    known = np.interp(at, seconds, rates)
    return float(sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(zip(at, known, strict=True))))
