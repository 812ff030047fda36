"""The load of a day with its morning rise: which day of a trace, where it lies on the clock, and what a part gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.live.load_window import BIN_S, DAY_S, NOISE, NOISE_EVERY_S, PEAK_SHARE, LoadWindow, Trace, WindowError
from models.arrays import Floats

DAYS_BEFORE, DAYS_AFTER = 14, 2
"""Of the trace, around the day of the rise: the history, and what parts of a later day are run on."""
OUTER_SHARE = 0.2
"""Of a rise's height: it begins where the load leaves the lowest fifth for good, and ends in the highest."""
REGULAR_SHARE = 0.05
"""Of a rise's height, by which a regular day differs on average from the day before while it rises."""
_DAY, _HALF_DAY = DAY_S // BIN_S, DAY_S // BIN_S // 2


@dataclass(frozen=True, slots=True)
class Rise:
    """Bins of a trace: the least load of a day, and where its rise begins and ends."""

    trough: int
    begin: int
    end: int


def choose_rise(values: Floats) -> Rise:
    """Return the shortest rise of the regular days of a trace, of equally short ones the most regular.

    The rise of a day goes from its least load to the most of the twelve hours after it.

    Args:
        values: (n,) of the trace, a bin each.

    Raises:
        WindowError: no day is regular, or the trace is too short.
    """
    days = range(DAYS_BEFORE, len(values) // _DAY - DAYS_AFTER)
    rises = [_measure_rise(values, day) for day in days]
    regular = [(rise.end - rise.begin, differs, rise.begin, rise) for rise, differs in rises if differs < REGULAR_SHARE]
    if not regular:
        raise WindowError(f"of {len(days)} days with {DAYS_BEFORE} before and {DAYS_AFTER} after, none rises regularly")
    return min(regular)[-1]


def _measure_rise(values: Floats, day: int) -> tuple[Rise, float]:
    """Return a day's rise, and the share of its height by which it differs from the day before."""
    trough = day * _DAY + int(values[day * _DAY : (day + 1) * _DAY].argmin())
    peak = trough + int(values[trough : trough + _HALF_DAY].argmax())
    rising = values[trough : peak + 1]
    height = max(float(rising[-1] - rising[0]), 1e-9)
    share = (rising - rising[0]) / height
    begin = int(np.flatnonzero(share <= OUTER_SHARE)[-1])
    end = begin + int(np.flatnonzero(share[begin:] >= 1 - OUTER_SHARE)[0])
    differs = float(np.abs(rising - values[trough - _DAY : peak + 1 - _DAY]).mean()) / height
    return Rise(trough, trough + begin, trough + end), differs


@dataclass(frozen=True, slots=True)
class LaidTrace:
    """A trace on the clock.

    Attributes:
        values_per_s: (n,) events/s at every bin, linear in between.
        first_s: epoch seconds of the first.
        rise_s: begin and end of its rise, epoch seconds.
        trough_s: of the least load before it.
    """

    values_per_s: Floats
    first_s: float
    rise_s: tuple[float, float]
    trough_s: float

    def rates(self, at_s: Floats) -> Floats:
        """Return events/s at epoch seconds.

        Raises:
            WindowError: the trace has ended.
        """
        bins = (at_s - self.first_s) / BIN_S
        if bins.max() > len(self.values_per_s) - 1:
            raise WindowError("the trace ends before the load: begin a new run in another folder")
        return np.interp(bins, np.arange(len(self.values_per_s)), self.values_per_s)

    def cut_window(self, begins_s: float, hours: float) -> LoadWindow:
        """Return what lies before a time on a whole bin, and so many hours from there."""
        first = round((begins_s - self.first_s) / BIN_S)
        last = first + round(hours * 3600 / BIN_S)
        return LoadWindow(first, self.values_per_s[first : last + 1], self.values_per_s[:first])


def lay_trace(values: Floats, rise_at_s: float, carried_per_s: float) -> LaidTrace:
    """Lay a trace so that its rise begins at a time; the peak of that day is ``PEAK_SHARE`` of what the job carries.

    Args:
        values: (n,) of the trace, a bin each.
        rise_at_s: epoch seconds.
        carried_per_s: events/s that the job carries with all slots.

    Raises:
        WindowError: see :func:`choose_rise`.
    """
    rise = choose_rise(values)
    peak = float(values[rise.trough : rise.trough + _DAY].max())
    first_s, ends_s = (rise_at_s - one * BIN_S for one in (rise.begin, rise.begin - rise.end))
    scale = PEAK_SHARE * carried_per_s / peak
    return LaidTrace(values * scale, first_s, (rise_at_s, ends_s), first_s + rise.trough * BIN_S)


def holds_rise(span_s: tuple[float, float], rise_s: tuple[float, float]) -> bool | None:
    """Return whether a span holds the whole rise; None: nothing of it."""
    if span_s[1] <= rise_s[0] or rise_s[1] <= span_s[0]:
        return None
    return span_s[0] <= rise_s[0] and rise_s[1] <= span_s[1]


def continue_load(before: Trace, laid: LaidTrace, submitted_s: float, span_s: tuple[float, float], seed: int) -> Trace:
    """Return the load of all parts so far and a further one; between parts, and after the last, nothing comes.

    Args:
        before: the load of the parts before; empty.
        laid: the load by the clock.
        submitted_s: epoch seconds of the first part's submission, the trace's second 0.
        span_s: begin and end of the part with its lead, seconds since then.
        seed: of the noise, a factor for every minute.
    """
    start, end = round(span_s[0]), round(span_s[1])
    at = np.arange(start, end + 1, NOISE_EVERY_S)
    at = np.append(at, end) if at[-1] < end else at
    noise = 1.0 + NOISE * np.random.default_rng((seed, start)).standard_normal(len(at))
    rates: Floats = laid.rates(submitted_s + at.astype(np.float64)) * np.maximum(noise, 0.5)
    points = [(int(second), float(rate)) for second, rate in zip(at, rates, strict=True)]
    past = [*before[:-1], (start - 1, 0.0)] if before else []
    return [*past, *points, (end + 1, 0.0), (end + DAY_S, 0.0)]


@dataclass(frozen=True, slots=True)
class Request:
    """More or fewer slots that the job was asked to run on.

    Attributes:
        at_s: when, epoch seconds.
        before, after: slots.
        lead_s: until the load passes what the slots before carry, negative: it had passed them; None: it does not.
    """

    at_s: float
    before: int
    after: int
    lead_s: float | None


def list_requests(
    actions: Sequence[tuple[float, int]], load: Sequence[tuple[float, float]], carried_per_s: Floats
) -> list[Request]:
    """Return the requests of a part, with the lead of those for more slots.

    Args:
        actions: (epoch second, slots asked for), the first of them what the part began with.
        load: (epoch second, events/s) of the part, without noise.
        carried_per_s: (slots + 1,) events/s that a number of slots carries.
    """
    result = []
    for (_, before), (at_s, after) in pairwise(actions):
        passes_s = _find_passing(load, at_s, float(carried_per_s[before])) if after > before else None
        result.append(Request(at_s, before, after, None if passes_s is None else passes_s - at_s))
    return result


def _find_passing(load: Sequence[tuple[float, float]], at_s: float, carried_per_s: float) -> float | None:
    """Return when the load passes a rate: at the last time before, if it is above it, else at the next time."""
    begins_s = None
    for second, rate in load:
        if rate <= carried_per_s:
            begins_s = None
        elif begins_s is None:
            begins_s = second
        if second >= at_s and begins_s is not None:
            return begins_s
    return None
