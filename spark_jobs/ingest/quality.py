"""How good the input was: one row of ops.quality per interval and cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_rows
from include.raw_files import RawFile
from include.tables import OBSERVATIONS, QUALITY
from include.utc import Interval
from spark_jobs.ingest.hours import hours_where
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_literal

_OF_LINES = {"rows": "lines"} | {name: name for name in ("kept", "duplicate", "quarantined", "quarantined_values")}
_OPERATOR = ("cluster", "job", "operator")
_US = 1_000_000
Counts = dict[str, dict[str, Any]]
"""Per cluster, columns of ops.quality by name."""


def count_refusals(own_files: Iterable[RawFile], files: Iterable[Mapping[str, Any]]) -> Counts:
    """Count the interval's own files, the misplaced and the unreadable too, and what became of their lines."""
    counted: Counts = {}
    for file in files:
        result = counted.setdefault(file["cluster"], dict.fromkeys(("files", "quarantined_files", *_OF_LINES), 0))
        result["files"] += 1
        result["quarantined_files"] += file["reason"] is not None and file["detail"] is not None
        for total, name in _OF_LINES.items():
            result[total] += file[name]
    refused = Counter(file.cluster for file in own_files if file.cluster and file.fault is not None)
    for cluster, number in refused.items():
        result = counted.setdefault(cluster, {})
        result["quarantined_files"] = result.get("quarantined_files", 0) + number
    return counted


def count_windows(lake: Lake, interval: Interval) -> Counts:
    """Count ``jobs``, ``observations`` and ``missing_windows`` of the interval in silver.observations.

    Missing are windows without a sample between the first and last of each job, operator by operator. Those that a
    topic alone tells of have no sample, and are not counted.
    """
    where = f"{hours_where(interval)} AND samples > 0"
    columns = [*_OPERATOR, "window_start", "window_s"]
    counted = []
    for part in lake.few(OBSERVATIONS).read_parts(columns, interval.start.date(), interval.end.date(), where):
        index = pc.divide(part["window_start"].cast(pa.int64()), pc.multiply(part["window_s"].cast(pa.int64()), _US))
        rows = part.select(_OPERATOR).append_column("seen", pa.repeat(1, len(part)))
        rows = rows.append_column("first", index).append_column("last", index)
        counted.append(_sum_up(rows, _OPERATOR))
    if not counted:
        return {}
    every = _sum_up(pa.concat_tables(counted), _OPERATOR)
    jobs = _sum_up(every.append_column("operators", pa.repeat(1, len(every))), _OPERATOR[:2], "operators")
    counts: Counts = {}
    for cluster, _, windows, first, last, operators in zip(*jobs.to_pydict().values(), strict=True):
        result = counts.setdefault(cluster, {"jobs": 0, "observations": 0, "missing_windows": 0})
        result["jobs"] += 1
        result["observations"] += windows
        result["missing_windows"] += operators * (last - first + 1) - windows
    return counts


def _sum_up(rows: pa.Table, key: Sequence[str], *summed: str) -> pa.Table:
    """Return for each key how many windows it has, the first and the last, and other sums."""
    how = {"seen": "sum", "first": "min", "last": "max", **dict.fromkeys(summed, "sum")}
    return rows.group_by([*key]).aggregate([*how.items()]).rename_columns([*key, *how])


def merge_counts(*counts: Counts) -> Counts:
    """Put counts together, cluster by cluster."""
    merged: Counts = {}
    for some in counts:
        for cluster, result in some.items():
            merged.setdefault(cluster, {}).update(result)
    return merged


def write_quality(interval: Interval, counts: Counts, lake: Lake) -> None:
    """Write ops.quality of one interval, a row per cluster; what was not counted is zero."""
    numbers = [column for column, kind in QUALITY.columns.items() if kind == "BIGINT"]
    bounds = {"interval_start": interval.start, "interval_end": interval.end}
    rows = [
        {**bounds, "cluster": cluster, **{number: int(result.get(number) or 0) for number in numbers}}
        for cluster, result in sorted(counts.items())
    ]
    start, end = (timestamp_literal(timestamp) for timestamp in (interval.start, interval.end))
    where = f"interval_start = {start} AND interval_end = {end}"
    lake.few(QUALITY).replace(arrow_rows(QUALITY, rows), where)
