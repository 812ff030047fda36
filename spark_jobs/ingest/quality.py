"""What was wrong with the input: rows of ops.quarantine, and one row of ops.quality per interval and cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.tables import QUALITY, QUARANTINE
from include.utc import Interval
from spark_jobs.ingest.hours import hours_where
from spark_jobs.lake import Lake, date_hour_columns, rows_of
from spark_jobs.raw_parsing.envelopes import DAMAGED
from spark_jobs.raw_parsing.raw_files import RawFile

Counts = dict[str, dict[str, Any]]
"""Per cluster, columns of ops.quality by name."""
_FOUND = "STRUCT<reason: STRING, detail: STRING, raw: STRING>"


def quarantine_rows(rows: DataFrame) -> DataFrame:
    """Return one row per line that has a fault, with the line as received, and one per metric value that has a fault.

    Of a line that only has faulty values, the rest stands in bronze.
    """
    of_line = F.array(F.struct("fault.reason", "fault.detail", F.col("line").alias("raw")).cast(_FOUND))
    of_values = F.when(~F.col("duplicate"), F.col("value_faults"))
    found = F.when(F.col("fault").isNotNull(), of_line).otherwise(of_values)
    faulty = rows.where("fault IS NOT NULL OR value_faults IS NOT NULL").withColumn("found", F.explode(found))
    return faulty.select(
        F.col("cluster_dir").alias("cluster"),
        "found.reason",
        "found.detail",
        "found.raw",
        "observed_at",
        "source_file",
        *date_hour_columns("dir_hour"),
    ).select(*QUARANTINE.columns)


def add_lines(rows: DataFrame, lines: Callable[[list[str]], DataFrame]) -> DataFrame:
    """Fill in the lines of rows whose fault was found only by comparing them with others.

    Args:
        rows: marked rows that may have faults.
        lines: reads the lines of the files of the given names; columns ``LINE_COLUMNS``.
    """
    bare = rows.where("fault IS NOT NULL AND line IS NULL").localCheckpoint()
    files = [row["source_file"] for row in bare.select("source_file").distinct().collect()]
    if not files:
        return rows
    wanted = bare.select("source_file", "line_number")
    found = lines(files).join(F.broadcast(wanted), ["source_file", "line_number"], "left_semi")
    complete = bare.drop("line").join(found, ["source_file", "line_number"], "left")
    return rows.where("fault IS NULL OR line IS NOT NULL").unionByName(complete.select(*rows.columns))


def quarantine_files(spark: SparkSession, files: Iterable[RawFile]) -> DataFrame:
    """Return one row per file that is empty or too large to be read."""
    found = []
    for file in files:
        if file.is_readable:
            continue
        reason = "file_too_large" if file.size else "empty_file"
        located = {"cluster": file.cluster, "source_file": file.name, "raw": file.name}
        dated = {"date": file.hour.date(), "hour": file.hour.hour}
        found.append({"reason": reason, "detail": f"{file.size} bytes", **located, **dated})
    return rows_of(spark, QUARANTINE.columns, found)


def count_lines(rows: DataFrame, interval: Interval) -> Counts:
    """Count what stands in the interval's own files; ``first_late`` is the oldest observation accepted."""
    late = F.col("fault").isNull() & (F.col("observed_at") < F.lit(interval.start))
    hour = F.col("dir_hour")
    own = rows.where((hour >= F.lit(interval.start)) & (hour < F.lit(interval.end)))
    counts = own.groupBy(F.col("cluster_dir").alias("cluster")).agg(
        F.count_if(~F.col("fault.reason").eqNullSafe(DAMAGED)).alias("rows"),
        F.coalesce(F.sum("metric_values"), F.lit(0)).cast("BIGINT").alias("metric_values"),
        F.coalesce(F.sum("not_measured"), F.lit(0)).cast("BIGINT").alias("not_measured"),
        F.count_if(late).alias("late"),
        F.min(F.when(late, F.col("observed_at"))).alias("first_late"),
    )
    return _collect_counts(counts)


def count_refusals(own_files: Iterable[RawFile], own_marked: DataFrame, quarantine: DataFrame) -> Counts:
    """Count the interval's own files, the rows that repeat another, and the rows of ops.quarantine."""
    files = Counter(file.cluster for file in own_files)
    repeated = own_marked.where("duplicate").groupBy(F.col("cluster_dir").alias("cluster"))
    return merge_counts(
        {cluster: {"files": number} for cluster, number in files.items()},
        _collect_counts(repeated.agg(F.count(F.lit(1)).alias("duplicate"))),
        _collect_counts(quarantine.groupBy("cluster").agg(F.count(F.lit(1)).alias("quarantined"))),
    )


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
        for cluster, found in some.items():
            merged.setdefault(cluster, {}).update(found)
    return merged


def _collect_counts(of_clusters: DataFrame) -> Counts:
    return {row["cluster"]: row.asDict() for row in of_clusters.collect()}


def make_quality_rows(lake: Lake, interval: Interval, counts: Counts) -> DataFrame:
    """Return the rows of ops.quality, one per cluster; what was not counted is zero."""
    numbers = [column for column, kind in QUALITY.columns.items() if kind == "BIGINT"]
    bounds = {"interval_start": interval.start, "interval_end": interval.end}
    rows = [
        {**bounds, "cluster": cluster, **{number: int(found.get(number) or 0) for number in numbers}}
        for cluster, found in sorted(counts.items())
    ]
    return rows_of(lake.spark, QUALITY.columns, rows)
