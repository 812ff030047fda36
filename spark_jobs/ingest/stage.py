"""The ingestion stage: raw files -> bronze, quarantine and quality, then silver.

Every table is replaced over exact hours, so a run can be repeated, or killed anywhere and run again, with the same
tables.  Lines are parsed once and kept; each table is written from them.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from include.settings import Settings
from include.stages import StageRequest
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, INGESTED, QUALITY, QUARANTINE
from include.utc import Interval, format_utc
from spark_jobs.ingest.hours import hours_where, write_hours
from spark_jobs.ingest.parsed_input import ParsedInput, read_input
from spark_jobs.ingest.quality import file_quarantine, quality_rows, row_quarantine, window_counts, with_lines
from spark_jobs.ingest.silver import (
    job_history,
    job_observations,
    job_samples,
    write_job_graphs,
    write_observations,
    write_rescales,
)
from spark_jobs.job_history.job_replies import parsed_replies
from spark_jobs.job_history.rescales import unsettled_windows
from spark_jobs.lake import Lake, planned_once
from spark_jobs.raw_parsing.bronze_rows import (
    event_rows,
    kept_events,
    mark_repeated,
    mark_unknown,
    metrics_rows,
    repeated_keys,
)
from spark_jobs.raw_parsing.raw_files import read_contents
from spark_jobs.raw_parsing.raw_lines import read_lines
from spark_jobs.session import threads
from spark_jobs.timestamps import timestamp_literal

Counts = dict[str, dict[str, Any]]  # per cluster, the columns of ops.quality by name


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Ingest one interval; returns its counts."""
    with planned_once(spark):
        found, counts = _ingest(Lake(spark, settings.paths.lake), settings, request.interval)
    return _summary(found, counts)


def _ingest(lake: Lake, settings: Settings, interval: Interval) -> tuple[ParsedInput, Counts]:
    spark = lake.spark
    with threads(spark) as pool:
        prepared = pool.submit(lake.prepare, INGESTED)
        found = read_input(lake, settings, interval, pool)
        prepared.result()
        hours = Interval(found.start, interval.end)
        of_marked = pool.submit(_marked, found)
        # Which vertices are known matters to their metrics alone: replies about jobs need not wait for it.
        replies = of_marked.result() if found.has_repeated else _unrepeated(found.rows)
        events = kept_events(_belonging(replies, found))
        of_jobs = pool.submit(job_history, lake, settings, parsed_replies(events), hours)
        marked = of_marked.result()
        metrics = metrics_rows(_belonging(marked, found))

        def write_metrics() -> None:
            # The largest write takes half of the cores, so that all else goes on beside it.
            tasks = max(1, spark.sparkContext.defaultParallelism // 2)
            write_hours(lake, BRONZE_METRICS, metrics.coalesce(tasks), hours.start, hours.end)

        def write_silver() -> tuple[list[Row], list[Future[None]]]:
            jobs = of_jobs.result()
            of_graphs = pool.submit(write_job_graphs, lake, jobs, hours)
            of_unsettled = pool.submit(unsettled_windows(jobs.stops, jobs.polls, settings, hours.end).localCheckpoint)
            samples = job_samples(lake, settings, jobs, metrics, hours)
            of_rescales = pool.submit(write_rescales, lake, settings, jobs, samples, hours)
            seen = job_observations(jobs, samples, of_unsettled.result(), hours).localCheckpoint()
            of_observations = pool.submit(write_observations, lake, seen, jobs, hours)
            windows = window_counts(seen.where(hours_where(interval.start, interval.end))).collect()
            return windows, [of_graphs, of_rescales, of_observations]

        of_silver, of_metrics = pool.submit(write_silver), pool.submit(write_metrics)
        of_quarantine = pool.submit(_write_quarantine, lake, marked, found)
        write_hours(lake, BRONZE_JOB_EVENTS, event_rows(events), hours.start, hours.end)
        of_metrics.result()
        counts = of_quarantine.result()
        windows, writing = of_silver.result()
        _add_counts(counts, windows)
        _write_quality(lake, spark, interval, counts)  # while the last tables are written
        for written in writing:
            written.result()
    return found, counts


def _marked(found: ParsedInput) -> DataFrame:
    """Return the parsed rows with every fault that needs a look at other rows, and ``duplicate``."""
    with_known = mark_unknown(found.rows, found.known.result())
    if not found.has_repeated:
        return _unrepeated(with_known)
    # Keys of unknown vertices may be among them: rows that have a fault are not looked at when repetitions are marked.
    return mark_repeated(with_known, repeated_keys(found.rows).localCheckpoint()).localCheckpoint()


def _unrepeated(rows: DataFrame) -> DataFrame:
    return rows.withColumn("duplicate", F.lit(False))


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


def _write_quarantine(lake: Lake, marked: DataFrame, found: ParsedInput) -> Counts:
    """Write the quarantine of the interval's own directories, each broken line or value once.

    Returns the quality row of each cluster as far as it is known by now.
    """
    own = marked.where(_own(found))

    def lines(names: list[str]) -> DataFrame:
        files = [file for file in found.files if file.name in names]
        return read_lines(read_contents(lake.spark, files))

    files = file_quarantine(lake.spark, found.files)
    rows = row_quarantine(with_lines(own, lines)).unionByName(files).distinct().localCheckpoint()
    write_hours(lake, QUARANTINE, rows.repartition("date", "hour"), found.interval.start, found.interval.end)
    counts = {cluster: dict(of_cluster) for cluster, of_cluster in found.counts.items()}
    for file in found.files:
        of_cluster = counts.setdefault(file.cluster, {})
        of_cluster["files"] = of_cluster.get("files", 0) + 1
    repeated = own.where("duplicate").groupBy(F.col("cluster_dir").alias("cluster"))
    _add_counts(counts, repeated.agg(F.count(F.lit(1)).alias("duplicate")).collect())
    _add_counts(counts, rows.groupBy("cluster").agg(F.count(F.lit(1)).alias("quarantined")).collect())
    return counts


def _add_counts(counts: Counts, of_clusters: list[Row]) -> None:
    for row in of_clusters:
        counts.setdefault(row["cluster"], {}).update(row.asDict())


def _write_quality(lake: Lake, spark: SparkSession, interval: Interval, counts: Counts) -> None:
    start, end = (timestamp_literal(timestamp) for timestamp in (interval.start, interval.end))
    where = f"interval_start = {start} AND interval_end = {end}"
    lake.replace(QUALITY, quality_rows(spark, interval, counts), where)


def _summary(found: ParsedInput, counts: Counts) -> dict[str, object]:
    def total(name: str) -> int:
        return sum(int(of_cluster.get(name) or 0) for of_cluster in counts.values())

    of_lines = ("files", "rows", "metric_values", "late", "duplicate", "not_measured", "quarantined")
    return {
        **{name: total(name) for name in (*of_lines, "jobs", "observations", "missing_windows")},
        "start": format_utc(found.start),
        "end": format_utc(found.interval.end),
    }
