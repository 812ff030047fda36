"""Traces as users have them: a CSV file with a time and a rate column, brought to five-minute means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats
from models.evaluation.rate_series import SHORT_GAP_S, fill_gaps, find_gaps

BIN_S = 300
DAY_BINS = 86_400 // BIN_S
STEP_LEAST_S, STEP_MOST_S = 1.0, 3600.0
_READABLE_SHARE = 0.9
# Numbers above these are nano-, micro- and milliseconds since 1970.
_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))


class TraceError(ValueError):
    """A file that holds no trace; the message says what is wrong with it."""


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

    def cut_days(self, days: float | None) -> Trace:
        """Return the beginning of the trace; all of it for None."""
        bins = len(self.values) if days is None else max(1, round(days * DAY_BINS))
        return Trace(self.name, self.start_s, self.values[:bins], self.notes)


def read_trace(path: Path) -> Trace:
    """Read a CSV file, gzipped or not, with a time and a rate column under any header or none.

    Raises:
        TraceError: no such columns, too short, or a step outside 1 s .. 1 h.
    """
    times_s, values, columns = _read_columns(path)
    kept = np.isfinite(times_s) & np.isfinite(values) & (values >= 0)
    notes = [columns]
    if not kept.all():
        notes.append(f"{int((~kept).sum())} rows without a time or a rate left out")
    series = pd.Series(values[kept]).groupby(times_s[kept]).mean().sort_index()
    at, rates = np.array(series.index, float), np.array(series, float)
    if len(at) < int(kept.sum()):
        notes.append(f"{int(kept.sum()) - len(at)} doubled times averaged")
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


def _read_columns(path: Path) -> tuple[Floats, Floats, str]:
    """Return times in epoch seconds and rates, NaN where they cannot be read, and which columns they are."""
    try:
        table = pd.read_csv(path, header=None, dtype=str, skipinitialspace=True, comment="#")
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error
    if _parse_numbers(table.iloc[:1]).isna().to_numpy().all() and _parse_times(table.iloc[0]).isna().all():
        header, table = table.iloc[0].astype(str).tolist(), table.iloc[1:]
    else:
        header = [f"column {number}" for number in range(1, table.shape[1] + 1)]
    numbers = _parse_numbers(table)
    times = _find_times(table, numbers)
    rates = [place for place in table if place != times and numbers[place].notna().mean() >= _READABLE_SHARE / 2]
    if times is None or not rates:
        raise TraceError(f"{path}: needs a column of times and one of rates; found {header}")
    rate = rates[0]
    places = {place: number for number, place in enumerate(table)}
    text = f"time: {header[places[times]]}, rate: {header[places[rate]]}"
    at = numbers[times].to_numpy(float) if _is_number(numbers[times]) else _seconds(_parse_times(table[times]))
    return _to_seconds(at), numbers[rate].to_numpy(float), text


def _find_times(table: pd.DataFrame, numbers: pd.DataFrame) -> Any:
    """Return the first column that holds dates, else the first whose numbers only rise; None without any."""
    for place in table:
        if not _is_number(numbers[place]) and _parse_times(table[place]).notna().mean() >= _READABLE_SHARE:
            return place
    for place in table:
        values = numbers[place].dropna().to_numpy(float)
        if _is_number(numbers[place]) and len(values) > 1 and (np.diff(values) >= 0).mean() >= _READABLE_SHARE:
            return place
    return None


def _parse_numbers(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({place: pd.to_numeric(table[place], errors="coerce") for place in table})


def _is_number(column: pd.Series[Any]) -> bool:
    return bool(column.notna().mean() >= _READABLE_SHARE)


def _parse_times(column: pd.Series[Any]) -> pd.Series[Any]:
    return pd.to_datetime(column, errors="coerce", utc=True, format="mixed")


def _seconds(times: pd.Series[Any]) -> Floats:
    since = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.array(since, float)


def _to_seconds(at: Floats) -> Floats:
    largest = float(np.nanmax(np.abs(at), initial=0.0))
    return at * next((factor for above, factor in _UNITS if largest > above), 1.0)


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
