"""Input of the forecasters: cleaned rates of many series on one calendar.

Zeros, resets and gaps are data errors before they are load: a poller that failed, a counter that restarted or a window
without samples must not be learned as an absence of load, nor a figure of a single poll as load.  They are set to NaN
unless they last.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.forecasting.calendar import Calendar
from models.polling.plausibility import find_single_spikes

NOTHING_SHARE = 0.01
"""A rate below this share of the usual rate of its hour of day is treated as missing data."""
SPIKE_FACTOR = 10.0
"""A rate above this many times the busiest usual hour is treated as a counter reset."""
OUTAGE_DAYS = 1.0
"""A run this long is real load: the source has stopped, or grown."""
SPIKE_BINS = 2
MOST_PER_S = 1e15
"""No source emits more: such a value is no rate."""


@dataclass(frozen=True, slots=True)
class RateHistory:
    """Rates of n series in T bins, ready for the forecasters.

    Attributes:
        calendar: the bins.
        observed: records/s, shape (n, T), NaN where there is no trustworthy measurement.
        filled: the same with gaps filled from earlier bins only, zero before a series begins, shape (n, T).
        begin: first observed bin of each series, T when there is none, shape (n,).
    """

    calendar: Calendar
    observed: Floats
    filled: Floats
    begin: Ints

    @property
    def bins(self) -> int:
        """Length T of the history."""
        return int(self.observed.shape[1])


def prepare(rates_per_s: Floats, calendar: Calendar) -> RateHistory:
    """Clean and fill rates of shape (n, T); negative, infinite and impossible values count as missing."""
    rates = np.asarray(rates_per_s, dtype=np.float64)
    rates = np.where((rates >= 0) & (rates <= MOST_PER_S), rates, np.nan)
    observed = np.where(_find_errors(rates, calendar), np.nan, rates)
    return RateHistory(calendar, observed, fill_causally(observed, calendar), first_observed_bin(observed))


def select_series(history: RateHistory, rows: Bools) -> RateHistory:
    """Return some series of a history, rows (n,)."""
    return replace(history, observed=history.observed[rows], filled=history.filled[rows], begin=history.begin[rows])


def first_observed_bin(observed: Floats) -> Ints:
    """Return the first observed bin of each series, T when there is none, shape (n,)."""
    after = np.ones((len(observed), 1), bool)
    return np.asarray(np.argmax(np.concatenate([np.isfinite(observed), after], axis=1), axis=1), np.int64)


def _find_errors(rates: Floats, calendar: Calendar) -> Bools:
    """Mark bins that read next to nothing, or absurdly much, against the usual hour or the bins around; (n, T)."""
    single = find_single_spikes(rates)
    if single.any():
        rates = np.where(single, np.nan, rates)  # such a rate would make the rates beside it look like nothing
    usual = usual_by_hour(rates, calendar)
    busiest = usual.max(axis=1, keepdims=True, initial=0.0)
    nothing = rates <= NOTHING_SHARE * usual
    nothing &= usual > 0
    spike = (rates > SPIKE_FACTOR * busiest) & (busiest > 0)
    if not (nothing.any() or spike.any()):
        return np.asarray(nothing | single)
    # A gap inside an outage belongs to it, so unmeasured bins neither end a run nor make one.
    missing = np.isnan(rates)
    lasting = int(OUTAGE_DAYS * calendar.day)
    result = _short_runs(nothing | missing, lasting) & nothing | _short_runs(spike, SPIKE_BINS + 1)
    return np.asarray(result | single)


def usual_by_hour(rates: Floats, calendar: Calendar) -> Floats:
    """Return the median over days of the mean rate in each hour of day, repeated for its bins, shape (n, T)."""
    n, T = rates.shape
    per_block = next(size for size in range(max(1, calendar.day // 24), 0, -1) if calendar.day % size == 0)
    blocks_a_day = calendar.day // per_block
    padding = -T % calendar.day
    padded = np.concatenate([np.full((n, padding), np.nan), rates], axis=1).reshape(n, -1, blocks_a_day, per_block)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # blocks without any value stay NaN, which is meant
        counted = np.isfinite(padded).sum(axis=3)
        hourly = np.nansum(padded, axis=3) / np.where(counted > 0, counted, np.nan)
        usual = np.nanmedian(hourly, axis=1)
    usual = np.repeat(np.nan_to_num(usual, nan=0.0), per_block, axis=1)
    return np.tile(usual, (1, padded.shape[1]))[:, padding:]


def _short_runs(marked: Bools, limit: int) -> Bools:
    """Keep the runs of marked bins that are shorter than ``limit``; shape (n, T)."""
    n, T = marked.shape
    edges = np.diff(np.concatenate([np.zeros((n, 1), bool), marked, np.zeros((n, 1), bool)], axis=1).astype(np.int8))
    row, start = np.nonzero(edges == 1)
    _, stop = np.nonzero(edges == -1)
    short = (stop - start) < limit
    delta = np.zeros((n, T + 1), np.int8)
    delta[row[short], start[short]] = 1
    delta[row[short], stop[short]] -= 1
    return np.cumsum(delta, axis=1, dtype=np.int8)[:, :T] > 0


def fill_causally(observed: Floats, calendar: Calendar) -> Floats:
    """Fill gaps with the bin a week before, else a day before, else the last value; shape (n, T).

    Only earlier bins are used, so that one fill serves every origin of a backtest.
    """
    filled = observed.copy()
    for season in (calendar.week, calendar.day):
        for start in range(season, filled.shape[1], season):
            block = filled[:, start : start + season]
            before = filled[:, start - season : start - season + block.shape[1]]
            np.copyto(block, before, where=np.isnan(block))
    missing = np.isnan(filled)
    rows = np.flatnonzero(missing.any(axis=1))  # few of most batches: those with a gap that no season fills
    if len(rows):
        missing, values = missing[rows], filled[rows]
        place = np.where(missing, -1, np.arange(filled.shape[1]))
        place = np.maximum.accumulate(place, axis=1)
        last = np.take_along_axis(values, np.maximum(place, 0), axis=1)
        filled[rows] = np.where(missing, np.where(place >= 0, last, 0.0), values)
    return filled
