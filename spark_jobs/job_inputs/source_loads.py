"""silver.source_loads: the windows of sources alone, which are few of all operators' and are read every hour.

It is a copy of silver.observations by hour: an hour's partition says from which files it was made, and is made anew
where those are others by now: of hours that came since, came late, were ingested again or merged, or are gone. So it
may be out of date, or not there at all, and whoever brings it up to date before reading has the rows that
silver.observations has.

Without Spark: an hour is read by column in tenths of a second, and most runs find one hour to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable
from include.tables import OBSERVATIONS, SOURCE_LOADS
from spark_jobs.job_inputs.copied_slices import find_stale

_RULE = 1
"""Counted up when the same windows make other rows: then every hour is made anew."""
_BATCH_WINDOWS = 2_000_000
"""So many windows, some 100 MB, are held before they are written."""
_NAMES = ["cluster", "job", "operator", "vertex_id"]
_ARRAYS = ["start_s", "window_s", "demand_per_s"]
_READ = [*_NAMES, "window_start", "window_s", "target_data_rate_per_s", "target_is_lower_bound"]
Hour = tuple[date, int]


def update_source_loads(lake: str, since: date, until: date) -> int:
    """Make the hours anew whose rows were not made from the windows that are there now.

    Args:
        lake: folder or URI.
        since: first date.
        until: last date.

    Returns:
        So many hours were others.
    """
    loads, version = LakeTable(lake, SOURCE_LOADS), LakeTable(lake, OBSERVATIONS).read_version()
    windows = LakeTable(lake, OBSERVATIONS, version)
    files = {} if version is None else windows.read_files_by_hour()
    wanted, stale = find_stale(loads, files, since, until, _RULE)
    for hours in _gather(windows, stale, wanted):
        loads.replace(pa.concat_tables(hours.values()), _where(hours))
    return len(stale)


def _gather(windows: LakeTable, stale: Sequence[Hour], wanted: dict[Hour, str]) -> Iterator[dict[Hour, pa.Table]]:
    """Yield the rows of stale hours, of as many hours at once as fit into memory; none of an hour that is gone."""
    hours: dict[Hour, pa.Table] = {}
    held = 0
    for hour in stale:
        rows = arrow_schema(SOURCE_LOADS).empty_table()
        if hour in wanted:
            measured = windows.read(_READ, hour[0], hour[0], f"hour = {hour[1]} AND is_source")
            rows, held = list_windows(measured, hour, wanted[hour]), held + len(measured)
        hours[hour] = rows
        if held >= _BATCH_WINDOWS:
            yield hours
            hours, held = {}, 0
    if hours:
        yield hours


def list_windows(measured: pa.Table, hour: Hour, made_from: str) -> pa.Table:
    """Return the rows of one hour; one without names when nothing was measured, so that it is not read again.

    A window of a rescale or restart counts when its rate could be measured: the load does not stop with the job.  A
    rate that is no number, or negative, is a gap; so is one that is no more than a lower bound of the demand.

    Args:
        measured: windows of sources, with names, times and rates of silver.observations.
        hour: of all of them.
        made_from: hash of their files.
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
    rows |= {"date": pa.array([hour[0]] * count), "hour": pa.array([hour[1]] * count)}
    return pa.table(rows | {"made_from": pa.array([made_from] * count)}).cast(arrow_schema(SOURCE_LOADS))


def _where(hours: Iterable[Hour]) -> str:
    """Return the slice of some hours as a predicate on partitions."""
    days: dict[date, list[str]] = {}
    for day, hour in hours:
        days.setdefault(day, []).append(str(hour))
    return " OR ".join(f"(date = DATE'{day}' AND hour IN ({', '.join(own)}))" for day, own in days.items())
