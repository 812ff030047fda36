"""The ingestion stage: raw files -> bronze, quarantine and quality, then silver.

Every table is replaced over exact hours, so a run can be repeated, or killed anywhere and run again, with the same
tables.  Lines are parsed once and kept; each table is written from them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.intervals import Interval, format_utc
from include.settings import Settings
from include.stages import StageRequest
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, QUALITY, QUARANTINE
from spark_jobs.ingest.bronze import (
    event_rows,
    known_vertices,
    mark_repeated,
    mark_unknown,
    metrics_rows,
    repeated_keys,
)
from spark_jobs.ingest.parsed_input import ParsedInput, read_input
from spark_jobs.ingest.quality import file_quarantine, missing_windows, quality_rows, row_quarantine, with_lines
from spark_jobs.ingest.raw_files import read_lines
from spark_jobs.ingest.silver import (
    LOOKBACK,
    JobHistory,
    hours_where,
    read_hours,
    write_hours,
    write_job_graphs,
    write_samples,
)
from spark_jobs.lake import Lake, timestamp_literal


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Ingest one interval; returns its counts."""
    lake = Lake(spark, settings.paths.lake)
    found = read_input(spark, settings, request.interval)
    marked = _marked(lake, found)
    start, end = found.start, found.interval.end
    metrics = metrics_rows(_belonging(marked, found))

    def write_metrics() -> None:
        write_hours(lake, BRONZE_METRICS, metrics, start, end)

    def write_events() -> JobHistory:
        write_hours(lake, BRONZE_JOB_EVENTS, event_rows(_belonging(marked, found)), start, end)
        return write_job_graphs(lake, settings, start, end)

    def write_quarantine() -> dict[str, dict[str, Any]]:
        return _write_quarantine(lake, marked, found)

    with ThreadPoolExecutor() as pool:  # while one is planned or commits, the others keep the cores busy
        of_metrics, of_events, of_quarantine = (
            pool.submit(write_metrics),
            pool.submit(write_events),
            pool.submit(write_quarantine),
        )
        observed = write_samples(lake, settings, of_events.result(), metrics, Interval(start, end))
    of_metrics.result()
    counts = of_quarantine.result()
    of_interval = observed.where(hours_where(found.interval.start, found.interval.end)).localCheckpoint()
    _add_counts(counts, missing_windows(of_interval))
    _write_quality(lake, spark, found.interval, counts)
    return _summary(found, counts, of_interval)


def _marked(lake: Lake, found: ParsedInput) -> DataFrame:
    """Return the parsed rows with every fault that needs a look at other rows, and ``duplicate``."""
    earlier = read_hours(lake, BRONZE_JOB_EVENTS, found.start - LOOKBACK, found.start)
    with_known = mark_unknown(found.rows, known_vertices(found.rows, earlier).localCheckpoint())
    repeated = repeated_keys(with_known).localCheckpoint()
    if repeated.isEmpty():
        return with_known.withColumn("duplicate", F.lit(False))
    return mark_repeated(with_known, repeated).localCheckpoint()


def _belonging(marked: DataFrame, found: ParsedInput) -> DataFrame:
    """Return the rows of the hours that are written.

    A file of raw lines is read by one task and holds one hour: the tables' files stay few without a shuffle.
    """
    return marked.where(
        (F.col("observed_at") >= F.lit(found.start)) & (F.col("observed_at") < F.lit(found.interval.end))
    )


def _own(found: ParsedInput) -> Column:
    """Whether a row stands in the interval's own directories: the others are another run's to judge."""
    hour = F.col("dir_hour")
    return (hour >= F.lit(found.interval.start)) & (hour < F.lit(found.interval.end))


def _write_quarantine(lake: Lake, marked: DataFrame, found: ParsedInput) -> dict[str, dict[str, Any]]:
    """Write the quarantine of the interval's own directories, each broken line or value once.

    Returns the quality row of each cluster as far as it is known by now.
    """
    own = marked.where(_own(found))

    def lines(names: list[str]) -> DataFrame:
        files = [file for file in found.files if file.name in names]
        return read_lines(lake.spark, files, skip_corrupt=bool(found.corrupt))

    files = file_quarantine(lake.spark, found.files, found.corrupt)
    rows = row_quarantine(with_lines(own, lines)).unionByName(files).distinct().localCheckpoint()
    write_hours(lake, QUARANTINE, rows.repartition("date", "hour"), found.interval.start, found.interval.end)
    counts = {cluster: dict(of_cluster) for cluster, of_cluster in found.counts.items()}
    for file in found.files:
        of_cluster = counts.setdefault(file.cluster, {})
        of_cluster["files"] = of_cluster.get("files", 0) + 1
    repeated = own.where("duplicate").groupBy(F.col("cluster_dir").alias("cluster"))
    _add_counts(counts, repeated.agg(F.count(F.lit(1)).alias("duplicate")))
    _add_counts(counts, rows.groupBy("cluster").agg(F.count(F.lit(1)).alias("quarantined")))
    return counts


def _add_counts(counts: dict[str, dict[str, Any]], of_clusters: DataFrame) -> None:
    for row in of_clusters.collect():
        counts.setdefault(row["cluster"], {}).update(row.asDict())


def _write_quality(lake: Lake, spark: SparkSession, interval: Interval, counts: dict[str, dict[str, Any]]) -> None:
    start, end = (timestamp_literal(format_utc(moment)) for moment in (interval.start, interval.end))
    where = f"interval_start = {start} AND interval_end = {end}"
    lake.replace(QUALITY, quality_rows(spark, interval, counts), where)


def _summary(found: ParsedInput, counts: dict[str, dict[str, Any]], observed: DataFrame) -> dict[str, object]:
    def total(name: str) -> int:
        return sum(int(of_cluster.get(name) or 0) for of_cluster in counts.values())

    seen = observed.agg(
        F.count_distinct("cluster", "job").alias("jobs"), F.count(F.lit(1)).alias("observations")
    ).first()
    names = ("files", "rows", "metric_values", "late", "duplicate", "missing_windows", "not_measured", "quarantined")
    return {
        **{name: total(name) for name in names},
        "jobs": seen["jobs"] if seen else 0,
        "observations": seen["observations"] if seen else 0,
        "start": format_utc(found.start),
        "end": format_utc(found.interval.end),
    }
