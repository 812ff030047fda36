"""The rates of sources in bins, read without Spark: the same bits as the bins of their windows, a day at a time.

Spark groups a month of arrays by source in 13 s of processor time for 1,000 sources, besides reading the table's log,
planning and compiling; here they are read by column and averaged in 4 s, and a source travels as its bins alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable
from include.tables import SOURCE_LOADS
from include.utc import DAY_S
from models.arrays import Bools, Floats, Ints
from spark_jobs.by_job import list_distinct
from spark_jobs.source_inputs.renames import OperatorName
from spark_jobs.source_inputs.source_loads import update_source_loads
from spark_jobs.source_inputs.source_windows import RATES, SERIES, HistoryBins

SourceName = tuple[str, str, str]
"""Cluster, job and present operator."""
_NAMES = (*SERIES, "vertex_id")
_ARRAYS = ("start_s", "window_s", "demand_per_s")


@dataclass(frozen=True, slots=True)
class SourceRates:
    """The history of n sources in T bins.

    Attributes:
        names: cluster, job and operator of each.
        rate_per_s: mean of the windows of each bin, NaN where none was measured, shape (n, T).
        last_seen_s: end of the last window that was measured, epoch seconds; NaN without one, shape (n,).
    """

    names: list[SourceName]
    rate_per_s: Floats
    last_seen_s: Floats

    @property
    def table(self) -> pa.Table:
        """A row per source, with the columns of SERIES and RATES."""
        count, bins = self.rate_per_s.shape
        names = zip(*self.names, strict=True) if count else ((),) * len(SERIES)
        rates = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * bins, self.rate_per_s.ravel())
        columns = [*(pa.array(list(one), pa.string()) for one in names), rates, pa.array(self.last_seen_s)]
        return pa.table(columns, names=[*SERIES, *RATES])


def list_sources(
    lake: str,
    frame: HistoryBins,
    current: Mapping[OperatorName, str | None],
    replace: Callable[[pa.Table, str], None],
) -> list[SourceName]:
    """Return the sources with a window in a history, under their present names; the windows are brought up to date.

    The present name of an operator is null of one that has gone, see :mod:`.renames`.
    """
    days, places = _list_days(frame), _SourceIndex(current)
    update_source_loads(lake, days[0], days[-1], replace)
    for day, rows in _read_days(lake, days, [*_NAMES, "start_s"]):
        _place_rows(rows if days[0] < day < days[-1] else _select_inside(rows, frame), places)
    return places.names


def read_source_rates(
    lake: str, frame: HistoryBins, current: Mapping[OperatorName, str | None], wanted: Iterable[SourceName]
) -> SourceRates:
    """Return the rates of some sources of :func:`list_sources`; other arguments as there."""
    days, places, bins = _list_days(frame), _SourceIndex(current, frozenset(wanted)), _Bins(frame)
    for day, rows in _read_days(lake, days, [*_NAMES, *_ARRAYS]):
        bins.add(_read_windows(rows, places), len(places.names), day, is_last=day == days[-1])
    return bins.average(places.names)


def _list_days(frame: HistoryBins) -> list[date]:
    since, until = (datetime.fromtimestamp(s, UTC).date() for s in (frame.first_bin_s, frame.as_of_s))
    return [since + timedelta(days=back) for back in range((until - since).days + 1)]


def _read_days(lake: str, days: Sequence[date], columns: Sequence[str]) -> Iterator[tuple[date, pa.Table]]:
    """Yield each day with its rows; while one is worked on, the next is read."""
    loads = LakeTable(lake, SOURCE_LOADS)

    def read(day: date) -> pa.Table:
        return loads.read(columns, day, day, "operator IS NOT NULL")

    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = pool.submit(read, days[0])
        for day, following in zip(days, [*days[1:], None], strict=True):
            rows = ahead.result()
            if following is not None:
                ahead = pool.submit(read, following)
            yield day, rows


def _select_inside(rows: pa.Table, frame: HistoryBins) -> pa.Table:
    """Return the rows with a window in a history; those of days between its first and last all have one."""
    start_s = rows["start_s"].combine_chunks()
    flat = start_s.flatten().to_numpy()
    inside = (flat >= frame.first_bin_s) & (flat < frame.as_of_s)
    own = pc.list_parent_indices(start_s).to_numpy()[inside]
    return rows.take(pa.array(np.unique(own)))


class _SourceIndex:
    """The index of each source, in the order in which they come up."""

    def __init__(self, current: Mapping[OperatorName, str | None], wanted: frozenset[SourceName] | None = None) -> None:
        self._current, self._wanted = current, wanted
        self._place: dict[SourceName, int] = {}

    @property
    def names(self) -> list[SourceName]:
        """Cluster, job and present operator of each."""
        return list(self._place)

    def find(self, name: OperatorName) -> int:
        """Return the index of an operator, -1 of one that has gone or is not wanted."""
        operator = self._current.get(name, name[2])
        if operator is None:
            return -1
        own = name[0], name[1], operator
        is_wanted = self._wanted is None or own in self._wanted
        return self._place.setdefault(own, len(self._place)) if is_wanted else -1


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows of any sources: index of the source, start, length and rate of each, shape (N,)."""

    source: Ints
    start_s: Ints
    window_s: Ints
    demand_per_s: Floats

    def select(self, chosen: Bools) -> _Windows:
        return _Windows(self.source[chosen], self.start_s[chosen], self.window_s[chosen], self.demand_per_s[chosen])


def _place_rows(rows: pa.Table, places: _SourceIndex) -> Ints:
    """Return the index of each row's source, shape (rows,)."""
    distinct, row = list_distinct(rows, _NAMES)
    return np.array([places.find(name) for name in distinct], np.int64)[row]


def _read_windows(rows: pa.Table, places: _SourceIndex) -> _Windows:
    """Return the windows of rows of silver.source_loads, without those that are not asked for."""
    source = _place_rows(rows, places)
    arrays = [rows[name].combine_chunks() for name in _ARRAYS]
    count = np.diff(arrays[0].offsets.to_numpy()) if len(rows) else np.zeros(0, np.int64)
    start_s, window_s, demand_per_s = (one.flatten().to_numpy(zero_copy_only=False) for one in arrays)
    made = _Windows(np.repeat(source, count), start_s, window_s.astype(np.int64), demand_per_s.astype(np.float64))
    return made.select(made.source >= 0)


class _Bins:
    """Means of the windows in each bin, from one day after the other."""

    def __init__(self, frame: HistoryBins) -> None:
        self._frame = frame
        self._rates = np.zeros((0, frame.history_bins + 1))  # the last bin is the one that as-of cuts
        self._has_older, self._is_present = np.zeros(0, bool), np.zeros(0, bool)
        self._last_seen_s = np.zeros(0)
        self._later: tuple[Ints, Ints, Floats] = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        self._low = 0

    def _make_room(self, sources: int) -> None:
        new = sources - len(self._rates)
        if new > 0:
            self._rates = np.pad(self._rates, ((0, new), (0, 0)), constant_values=np.nan)
            self._has_older, self._is_present = (np.pad(one, (0, new)) for one in (self._has_older, self._is_present))
            self._last_seen_s = np.pad(self._last_seen_s, (0, new), constant_values=np.nan)

    def add(self, windows: _Windows, sources: int, day: date, *, is_last: bool) -> None:
        """Add all windows that begin on the day after those added so far; of so many sources are some known."""
        frame = self._frame
        self._make_room(sources)
        mine = windows.select((windows.start_s >= frame.first_bin_s) & (windows.start_s < frame.as_of_s))
        self._is_present[mine.source] = True
        mine = mine.select(np.isfinite(mine.demand_per_s))
        np.fmax.at(self._last_seen_s, mine.source, (mine.start_s + mine.window_s).astype(np.float64))
        day_ends_s = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + DAY_S
        whole = int((day_ends_s - frame.first_bin_s) // frame.bin_s)  # bins that no later day has windows of
        stop = frame.history_bins + 1 if is_last else min(whole, frame.history_bins)
        self._average(mine, stop)

    def _average(self, windows: _Windows, stop: int) -> None:
        """Fill the bins before ``stop``, each with the mean rate of its windows."""
        frame = self._frame
        span = np.maximum(1, windows.window_s // frame.bin_s)
        ahead = np.arange(int(span.sum())) - np.repeat(np.cumsum(span) - span, span)
        place = np.repeat((windows.start_s - frame.first_bin_s) // frame.bin_s, span) + ahead
        new = np.repeat(windows.source, span), place, np.repeat(windows.demand_per_s, span)
        source, place, rate = (np.concatenate(pair) for pair in zip(self._later, new, strict=True))
        ready = place < stop
        self._later = source[~ready], place[~ready], rate[~ready]
        width = stop - self._low
        cell, rate = source[ready] * width + place[ready] - self._low, rate[ready]
        size = len(self._rates) * width
        count = np.bincount(cell, minlength=size).reshape(-1, width)
        if count.max(initial=0) > 1:
            order = np.lexsort((rate, cell))  # one order of summation, whatever that of the rows
            cell, rate = cell[order], rate[order]
        total = np.bincount(cell, weights=rate, minlength=size).reshape(-1, width)
        self._rates[:, self._low : stop] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        self._has_older |= count[:, : max(0, frame.history_bins - self._low)].any(axis=1)
        self._low = stop

    def average(self, names: Sequence[SourceName]) -> SourceRates:
        """Return the sources that have a window; the bin that as-of cuts counts as the last of one without others."""
        self._rates[~self._has_older, -2] = self._rates[~self._has_older, -1]
        own = np.flatnonzero(self._is_present)
        return SourceRates([names[at] for at in own.tolist()], self._rates[own, :-1], self._last_seen_s[own])
