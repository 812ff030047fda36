"""How good the input was: one row of ops.quality per interval and cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.arrow_rows import arrow_rows
from include.raw_files import RawFile
from include.tables import QUALITY
from include.utc import Interval
from spark_jobs.ingest.hours import hours_where
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_literal

_OF_LINES = {"rows": "lines"} | {name: name for name in ("kept", "duplicate", "quarantined", "quarantined_values")}
Counts = dict[str, dict[str, Any]]
"""Per cluster, columns of ops.quality by name."""


def count_refusals(own_files: Iterable[RawFile], files: Iterable[Mapping[str, Any]]) -> Counts:
    """Count the interval's own files, and what became of their lines.

    Args:
        own_files: with what is misplaced or cannot be read.
        files: from :func:`spark_jobs.ingest.file_counts.count_files`.
    """
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


def count_windows(observations: DataFrame, interval: Interval) -> Counts:
    """Count ``jobs``, ``observations`` and ``missing_windows`` of the interval.

    Missing are windows without a sample between the first and last of each job, operator by operator.
    """
    index = F.unix_seconds("window_start") / F.col("window_s")
    per_operator = (
        observations.where(hours_where(interval))
        .groupBy("cluster", "job", "operator")
        .agg(F.count(F.lit(1)).alias("seen"), F.min(index).alias("first"), F.max(index).alias("last"))
    )
    per_job = per_operator.groupBy("cluster", "job").agg(
        F.sum("seen").alias("seen"),
        F.count(F.lit(1)).alias("operators"),
        (F.max("last") - F.min("first") + 1).alias("span"),
    )
    missing = F.sum(F.col("operators") * F.col("span") - F.col("seen")).cast("BIGINT")
    counts = per_job.groupBy("cluster").agg(
        F.count(F.lit(1)).alias("jobs"), F.sum("seen").alias("observations"), missing.alias("missing_windows")
    )
    return _collect_counts(counts)


def merge_counts(*counts: Counts) -> Counts:
    """Put counts together, cluster by cluster."""
    merged: Counts = {}
    for some in counts:
        for cluster, result in some.items():
            merged.setdefault(cluster, {}).update(result)
    return merged


def _collect_counts(of_clusters: DataFrame) -> Counts:
    return {row["cluster"]: row.asDict() for row in of_clusters.collect()}


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
