"""Traces as users have them: a CSV file with a time and a rate column, brought to five-minute means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.replay.trace_cells import TraceError
from benchmarks.replay.trace_columns import ColumnChoice, read_columns
from lab.replay.rate_series import SHORT_GAP_S, fill_gaps, find_gaps
from models.arrays import Bools, Floats

__all__ = ["ColumnChoice", "Trace", "TraceError", "read_trace"]

BIN_S = 300
DAY_BINS = 86_400 // BIN_S
STEP_LEAST_S, STEP_MOST_S = 1.0, 3600.0


@dataclass(frozen=True, slots=True)
class Trace:
    """A measured rate on a regular grid.

    Attributes:
        name: of the file without its endings.
        start_s: epoch seconds of the first bin, times without a zone taken as UTC.
        values: (n,) mean of each five minutes, in the file's own unit.
        notes: what was done to the file.
    """

    name: str
    start_s: int
    values: Floats
    notes: tuple[str, ...]

    @property
    def days(self) -> float:
        """Length."""
        return len(self.values) / DAY_BINS

    def cut_days(self, days: float | None) -> Trace:
        """Return the beginning of the trace; all of it for None."""
        bins = len(self.values) if days is None else max(1, round(days * DAY_BINS))
        return Trace(self.name, self.start_s, self.values[:bins], self.notes)


def read_trace(path: Path, choice: ColumnChoice | None = None) -> Trace:
    """Read a CSV file, gzipped or not, with a time and a rate column under any header or none.

    Args:
        path: of the file.
        choice: what a person says of its columns.

    Raises:
        TraceError: no such columns, or which are meant is not certain; too short, or a step outside 1 s .. 1 h.
    """
    result = read_columns(path, choice or ColumnChoice())
    times_s, values, columns = result.times_s, result.rates, result.text
    retained = np.isfinite(times_s) & np.isfinite(values) & (values >= 0)
    notes = [columns]
    if not retained.all():
        notes.append(f"{int((~retained).sum())} rows without a time or a rate left out")
    series = pd.Series(values[retained]).groupby(times_s[retained]).mean().sort_index()
    at, rates = np.array(series.index, float), np.array(series, float)
    if len(at) < int(retained.sum()):
        notes.append(f"{int(retained.sum()) - len(at)} doubled times averaged")
    if len(at) < 2:
        raise TraceError(f"{path}: fewer than two rows with a time and a rate")
    step_s = float(np.median(np.diff(at)))
    if not STEP_LEAST_S <= step_s <= STEP_MOST_S:
        raise TraceError(f"{path}: a step of {step_s:g} s; steps of {STEP_LEAST_S:g} s to {STEP_MOST_S:g} s are read")
    start_s, grid, known = _average_bins(at, rates, step_s)
    notes.append(_describe_step(step_s))
    filled = fill_gaps(np.where(known, grid, np.nan), BIN_S)
    notes += _describe_gaps(known)
    if len(filled) < DAY_BINS // 12:
        raise TraceError(
            f"{path}: {len(filled) * BIN_S / 3600:.1f} hours are too short for a replay; give two at least"
        )
    if not filled.max() > 0:
        raise TraceError(f"{path}: no rate is above 0")
    return Trace(path.name.split(".")[0], start_s, filled, tuple(notes))


def _average_bins(at: Floats, rates: Floats, step_s: float) -> tuple[int, Floats, Bools]:
    """Return the first bin's epoch seconds, (n,) means or interpolated values, and (n,) which of them are known."""
    first = int(at[0] // BIN_S)
    if step_s <= BIN_S:
        place = (at // BIN_S).astype(np.int64) - first
        count, total = np.bincount(place), np.bincount(place, rates)
        return first * BIN_S, np.asarray(total / np.maximum(count, 1), float), np.asarray(count > 0)
    # A coarse value is the mean of the time up to the next one, so it stands in the middle of it.
    bins = int(np.ceil((at[-1] + step_s) / BIN_S)) - first
    middles = (first + np.arange(bins) + 0.5) * BIN_S
    last = np.clip(np.searchsorted(at, middles, side="right") - 1, 0, None)
    known = middles - at[last] < 1.5 * step_s
    return first * BIN_S, np.interp(middles, at + step_s / 2, rates), np.asarray(known)


def _describe_step(step_s: float) -> str:
    if step_s == BIN_S:
        return "a value every 5 minutes, as it is"
    if step_s < BIN_S:
        return f"a value every {step_s:g} s, averaged over 5 minutes"
    return f"a value every {step_s / 60:g} minutes, joined linearly"


def _describe_gaps(known: Bools) -> list[str]:
    """Return what :func:`fill_gaps` does to (n,) bins of which some are known, nothing without gaps."""
    begin, end = find_gaps(known)
    long = (end - begin) * BIN_S > SHORT_GAP_S
    bins = int((end - begin)[long].sum())
    notes = [f"{int((~long).sum())} gaps of up to an hour joined linearly"] if len(begin) else []
    if bins:
        notes.append(
            f"{int(long.sum())} longer gaps, {bins * BIN_S / 3600:.1f} hours, FILLED from the same time of the day "
            "before (or after, or joined linearly)"
        )
    return notes
