"""The columns of a CSV file that hold times and rates; what could be two things is refused, and asked for by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.replay.trace_cells import UNREADABLE_MAX, TraceError, find_unreadable, parse_numbers, read_cells
from models.arrays import Floats

READABLE_SHARE = 0.9
COUNTER_SHARE, COUNTER_ROWS_MIN, RESET_SHARE = 0.97, 100, 0.05
# Numbers above these are nano-, micro- and milliseconds since 1970; below the last they are no time since 1970 at all.
_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))
_NAMED_UNITS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "millis": 1e-3}
_NUMBERED_DAY = re.compile(r"\s*(\d{1,2})([/.-])(\d{1,2})\2(\d{2}|\d{4})(?!\d)")
_DECIMAL_COMMA = r"\s*[-+]?[\d.]*,[\d.,]*\s*"  # no date, though one may be seen in it
_INDEX_NAMES = ("", "unnamed: 0")


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What a person says of a file's columns.

    Attributes:
        time, rate: headers, or numbers of columns from 1; None: what can be the only one.
        time_format: of dates, as ``strptime`` writes it; None: ISO 8601, or what can be read in one way alone.
    """

    time: str | None = None
    rate: str | None = None
    time_format: str | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Times and rates of a file.

    Attributes:
        times_s: (n,) epoch seconds, NaN where there is none.
        rates: (n,) NaN where there is none.
        text: which columns they are.
    """

    times_s: Floats
    rates: Floats
    text: str


def read_columns(path: Path, choice: ColumnChoice) -> Columns:
    """Read the times and rates of a CSV file, gzipped or not, under any header or none.

    Raises:
        TraceError: it holds none, or which column or which day is meant is not certain; the message names what could
            be, and how to say it.
    """
    table = read_cells(path)
    if _parse_numbers(table.iloc[:1]).isna().to_numpy().all() and _parse_times(table.iloc[0]).isna().all():
        header, table = ["" if pd.isna(one) else str(one).strip() for one in table.iloc[0]], table.iloc[1:]
    else:
        header = [f"column {number}" for number in range(1, table.shape[1] + 1)]
    table.columns = pd.RangeIndex(table.shape[1])
    numbers = _parse_numbers(table)
    file = _File(path, header, table, numbers)
    time = file.place_of(choice.time, "--time-column") if choice.time else file.find_time(choice)
    at = file.read_times(time, choice)
    rate = file.place_of(choice.rate, "--rate-column") if choice.rate else file.find_rate(time)
    if rate == time:
        raise TraceError(f"{path}: {file.show([rate])} cannot be both time and rate")
    file.refuse_unreadable(time, pd.Series(at, table.index))
    file.refuse_unreadable(rate, numbers[rate])
    if not choice.rate and _counts_up(numbers[rate]):
        raise TraceError(
            f"{path}: {file.show([rate])} only rises, as a counter does; export its rate, or say that it is one with "
            "--rate-column"
        )
    excluded = [place for place in file.indices() if place not in (time, rate)]
    text = f"time: {header[time]}, rate: {header[rate]}"
    if excluded:
        text += f", left out as row numbers: {file.show(excluded)}"
    return Columns(at, numbers[rate].to_numpy(float), text)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    header: list[str]
    table: pd.DataFrame
    numbers: pd.DataFrame

    @property
    def places(self) -> range:
        """The columns, from 0."""
        return range(len(self.header))

    def show(self, places: Sequence[int]) -> str:
        """Return the names of columns; one without a name by its number."""
        return ", ".join(
            f"column {place + 1}" if self.header[place].lower() in _INDEX_NAMES else self.header[place]
            for place in places
        )

    def place_of(self, wanted: str, option: str) -> int:
        """Return the column of a header or number."""
        same = [place for place, name in enumerate(self.header) if name == wanted]
        if len(same) == 1:
            return same[0]
        if not same and wanted.isdigit() and 1 <= int(wanted) <= len(self.header):
            return int(wanted) - 1
        raise TraceError(f"{self.path}: {option} {wanted!r} is none of its columns; found {self.header}")

    def indices(self) -> list[int]:
        """Return the columns without a name that number the rows, as pandas writes its index."""
        return [
            place
            for place in self.places
            if self.header[place].lower() in _INDEX_NAMES and _counts_rows(self.numbers[place])
        ]

    def is_number(self, place: int) -> bool:
        """Whether nearly all of a column are numbers."""
        return bool(self.numbers[place].notna().mean() >= READABLE_SHARE)

    def refuse_unreadable(self, place: int, read: pd.Series[Any]) -> None:
        """Raise where more than a few cells of a column hold something that was not read: they are no random part."""
        unread = find_unreadable(self.table[place], read)
        if len(unread) > UNREADABLE_MAX * len(read):
            raise TraceError(
                f"{self.path}: {len(unread)} of {len(read)} cells of {self.show([place])} cannot be read, "
                f"{unread[0][:40]!r} is the first; export them without a format"
            )

    def find_time(self, choice: ColumnChoice) -> int:
        """Return the only column that holds dates, else the only one of numbers that can be times."""
        dates = [
            place
            for place in self.places
            if not self.is_number(place)
            and _parse_times(self.table[place], choice.time_format).notna().mean() >= READABLE_SHARE / 2
        ]
        rising = [place for place in self.places if self.is_number(place) and _is_ordered(self.numbers[place])]
        epochs = [place for place in rising if float(self.numbers[place].abs().max()) > _UNITS[-1][0]]
        named = [place for place in rising if _unit_in(self.header[place]) is not None]
        result = dates or epochs or named
        if len(result) == 1:
            return result[0]
        if not result:
            unnamed = [place for place in rising if place not in self.indices()]
            hint = (
                f"; {self.show(unnamed)} may be seconds, milliseconds or numbers of rows: write time_s or time_ms as "
                "its header"
                if unnamed
                else ""
            )
            raise TraceError(f"{self.path}: needs a column of times and one of rates; found {self.header}{hint}")
        raise TraceError(
            f"{self.path}: {self.show(result)} can be the time; say which with --time-column, or leave one in the file"
        )

    def find_rate(self, time: int) -> int:
        """Return the only other column of numbers."""
        passed_over = (time, *self.indices())
        result = [
            place
            for place in self.places
            if place not in passed_over and self.numbers[place].notna().mean() >= READABLE_SHARE / 2
        ]
        if len(result) == 1:
            return result[0]
        if not result:
            for place in self.places:
                if place not in passed_over:
                    self.refuse_unreadable(place, self.numbers[place])
            raise TraceError(f"{self.path}: needs a column of times and one of rates; found {self.header}")
        raise TraceError(
            f"{self.path}: {self.show(result)} can be the rate; say which with --rate-column, or leave one in the file"
        )

    def read_times(self, place: int, choice: ColumnChoice) -> Floats:
        """Return epoch seconds; of numbers below 1e8 the header has to name the unit."""
        if not self.is_number(place) or choice.time_format is not None:
            day_first = None if choice.time_format else self._day_first(place)
            return _seconds(_parse_times(self.table[place], choice.time_format, day_first=bool(day_first)))
        values = self.numbers[place].to_numpy(float)
        largest = float(np.nanmax(np.abs(values), initial=0.0))
        unit = next((factor for above, factor in _UNITS if largest > above), _unit_in(self.header[place]))
        if unit is None:
            raise TraceError(
                f"{self.path}: {self.show([place])} may be seconds, milliseconds or numbers of rows; write time_s or "
                "time_ms as its header"
            )
        return values * unit

    def _day_first(self, place: int) -> bool | None:
        """Return whether dates such as 13/04/2026 begin with the day; None where none is written so."""
        texts = self.table[place].dropna()
        parts = [match for text in texts if (match := _NUMBERED_DAY.match(text))]
        if not parts:
            return None
        remedy = 'write ISO 8601 (2026-04-03), or say it with --time-format, "%d/%m/%Y %H:%M" say'
        if any(len(match[4]) == 2 for match in parts):
            raise TraceError(
                f"{self.path}: {parts[0][0]!r} in {self.header[place]} has two digits for a year; {remedy}"
            )
        begins_with_day = any(int(match[1]) > 12 for match in parts)
        begins_with_month = any(int(match[3]) > 12 for match in parts)
        if begins_with_day == begins_with_month:
            raise TraceError(
                f"{self.path}: {parts[0][0]!r} in {self.header[place]} can be day/month or month/day; {remedy}"
            )
        return begins_with_day


def _parse_numbers(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({place: parse_numbers(table[place]) for place in table})


def _parse_times(column: pd.Series[Any], time_format: str | None = None, *, day_first: bool = False) -> pd.Series[Any]:
    if time_format is not None:
        return pd.to_datetime(column, errors="coerce", utc=True, format=time_format)
    dates = column.mask(column.astype("string").str.fullmatch(_DECIMAL_COMMA, na=False))
    return pd.to_datetime(dates, errors="coerce", utc=True, format="mixed", dayfirst=day_first)


def _seconds(times: pd.Series[Any]) -> Floats:
    since = (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.array(since, float)


def _unit_in(header: str) -> float | None:
    """Return the unit that a header ends in, as a share of a second."""
    return _NAMED_UNITS.get(re.split(r"[^a-z]+", header.lower().strip(")] "))[-1])


def _is_ordered(column: pd.Series[Any]) -> bool:
    """Whether nearly all of a column rises, or falls: the newest may come first."""
    steps = np.diff(column.dropna().to_numpy(float))
    return len(steps) > 0 and bool(max((steps >= 0).mean(), (steps <= 0).mean()) >= READABLE_SHARE)


def _counts_up(column: pd.Series[Any]) -> bool:
    """Whether a column rises all the time, but where it begins anew near 0; whichever end comes first."""
    known = column.dropna().to_numpy(float)
    for values in (known, known[::-1]):
        steps, is_reset = np.diff(values), values[1:] < RESET_SHARE * values[:-1]
        if len(steps) >= COUNTER_ROWS_MIN and (steps > 0).mean() >= COUNTER_SHARE and is_reset[steps < 0].all():
            return True
    return False


def _counts_rows(column: pd.Series[Any]) -> bool:
    values = column.to_numpy(float)
    return len(values) > 1 and bool((np.diff(values) == 1).all())
