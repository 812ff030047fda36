"""silver.source_loads: the windows of sources alone, which are few of all operators' and are read every hour.

It is a copy of silver.observations: by hour of the day that is under way, and of days that are over by day, so that a
month is few files. A slice says from which files it was made, and is made anew where those are others by now: of
hours that came since, came late, were ingested again or merged, or are gone. So it may be out of date, or not there at
all, and whoever brings it up to date before reading has the rows that silver.observations has.

Read without Spark: an hour is read by column in tenths of a second, and most runs find one hour to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable
from include.tables import OBSERVATIONS, SOURCE_LOADS
from spark_jobs.source_inputs.copied_slices import find_stale

_LAST_HOUR = 23
_RULE = 1
"""Counted up when the same windows make other rows: then every slice is made anew."""
_BATCH_WINDOWS = 2_000_000
"""So many windows, some 100 MB, are held before they are written."""
_READ_BYTES = 256 * 2**20
"""Of files of a day's windows whose hours are read at once: some 5 million rows, of which sources are few."""
WHOLE_DAY = -1
"""In the column ``hour``."""
_NAMES = ["cluster", "job", "operator", "vertex_id"]
_ARRAYS = ["start_s", "window_s", "demand_per_s"]
_READ = [*_NAMES, "window_start", "window_s", "target_data_rate_per_s", "target_is_lower_bound", "hour"]
Slice = tuple[date, int]
"""A date and an hour, or :data:`WHOLE_DAY`."""


def update_source_loads(lake: str, since: date, until: date, replace: Callable[[pa.Table, str], None]) -> int:
    """Make the slices anew whose rows were not made from the windows that are there now; returns their number."""
    loads, version = LakeTable(lake, SOURCE_LOADS), LakeTable(lake, OBSERVATIONS).read_version()
    windows = LakeTable(lake, OBSERVATIONS, version)
    files = {} if version is None else windows.read_files_by_hour()
    slices = _join_days(files)
    wanted, stale = find_stale(loads, slices, since, until, _RULE)
    for made in _gather(windows, stale, wanted):
        replace(pa.concat_tables(made.values()), _where(made))
    return len(stale)


def _join_days(files: Mapping[Slice, frozenset[str]]) -> dict[Slice, frozenset[str]]:
    """Return the files of each slice from those of each hour: a day that is over is one.

    It is over when its last hour is there, or an hour of a later day.
    """
    newest = max((day for day, _ in files), default=date.min)
    result: dict[Slice, frozenset[str]] = {}
    for (day, hour), own in files.items():
        is_over = day < newest or (day, _LAST_HOUR) in files
        key = day, WHOLE_DAY if is_over else hour
        result[key] = result.get(key, frozenset()) | own
    return result


def _gather(windows: LakeTable, stale: Sequence[Slice], wanted: Mapping[Slice, str]) -> Iterator[dict[Slice, pa.Table]]:
    """Yield the rows of stale slices, of as many at once as fit into memory; none of a slice that is gone."""
    made: dict[Slice, pa.Table] = {}
    held = 0
    for day, own in groupby(stale, key=lambda one: one[0]):
        for part in windows.split_day(day, list(own), _READ_BYTES):
            made |= {one: arrow_schema(SOURCE_LOADS).empty_table() for one in part if one not in wanted}
            present = [one for one in part if one in wanted]
            measured = _read(windows, present) if present else None
            if measured is not None:
                made |= {one: list_windows(_select(measured, one), one, wanted[one]) for one in present}
                held += len(measured)
            if held >= _BATCH_WINDOWS:
                yield made
                made, held = {}, 0
    if made:
        yield made


def _read(windows: LakeTable, slices: Sequence[Slice]) -> pa.Table:
    """Return the windows of sources of slices of one day."""
    hours = [hour for _, hour in slices]
    where = "" if WHOLE_DAY in hours else f" AND hour IN ({', '.join(map(str, hours))})"
    day = slices[0][0]
    return windows.read(_READ, day, day, f"is_source{where}")


def _select(measured: pa.Table, one: Slice) -> pa.Table:
    return measured if one[1] == WHOLE_DAY else measured.filter(pc.equal(measured["hour"], one[1]))


def list_windows(measured: pa.Table, own: Slice, made_from: str) -> pa.Table:
    """Return the rows of one slice; one without names when nothing was measured, so that it is not read again.

    A window of a rescale or restart counts when its rate could be measured: the load does not stop with the job.  A
    rate that is no number, or negative, is a gap; so is one that is no more than a lower bound of the demand.
    ``made_from`` is the hash of the files of the slice.
    """
    rate = measured["target_data_rate_per_s"].to_numpy()
    is_bound = pc.fill_null(measured["target_is_lower_bound"], False).to_numpy()
    is_demand = np.isfinite(rate) & (rate >= 0) & ~is_bound
    start_s = measured["window_start"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())
    window_s = pc.fill_null(measured["window_s"], 1)  # of unknown length: in the bin of its start alone
    values = [start_s, window_s, pa.array(rate, mask=~is_demand)]
    flat = pa.table([*(measured[name] for name in _NAMES), *values], names=[*_NAMES, *_ARRAYS])
    ordered = flat.sort_by([(name, "ascending") for name in (*_NAMES, "start_s")])
    grouped = ordered.group_by(_NAMES, use_threads=False).aggregate([(name, "list") for name in _ARRAYS])
    rows = {name: grouped[name] for name in _NAMES} | {name: grouped[f"{name}_list"] for name in _ARRAYS}
    if not len(grouped):
        rows = {name: pa.array([None]) for name in _NAMES} | {name: pa.array([[]]) for name in _ARRAYS}
    count = max(1, len(grouped))
    rows |= {"date": pa.array([own[0]] * count), "hour": pa.array([own[1]] * count)}
    return pa.table(rows | {"made_from": pa.array([made_from] * count)}).cast(arrow_schema(SOURCE_LOADS))


def _where(slices: Iterable[Slice]) -> str:
    """Return some slices as a predicate on partitions."""
    days: dict[date, list[str]] = {}
    for day, hour in slices:
        days.setdefault(day, []).append(str(hour))
    return " OR ".join(f"(date = DATE'{day}' AND hour IN ({', '.join(own)}))" for day, own in days.items())
