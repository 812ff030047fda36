"""What the last minutes of raw files show of every job, by ingestion's own functions; nothing of it is written.

A line that breaks a rule is passed over: it is quarantined when its hour is ingested.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.flink.endpoints import RESTARTING_STATES
from include.settings import Cluster, Settings
from include.utc import ceil_hour, floor_hour
from spark_jobs.job_history.job_replies import (
    find_parallelism_periods,
    read_replies,
    select_checkpoints,
    select_failures,
    select_polls,
)
from spark_jobs.job_history.observations import build_observations
from spark_jobs.job_history.operator_names import name_operators
from spark_jobs.job_history.rescales import find_unsettled_windows
from spark_jobs.job_history.restarts import find_stops
from spark_jobs.job_history.samples import build_samples, source_or_named
from spark_jobs.job_inputs.newest_rows import JOB
from spark_jobs.job_inputs.windows import windows_between
from spark_jobs.raw_parsing.bronze_rows import select_event_rows, select_metrics_rows
from spark_jobs.raw_parsing.parsed_lines import parse_lines
from spark_jobs.raw_parsing.raw_contents import read_contents
from spark_jobs.raw_parsing.raw_files import hour_range, list_files
from spark_jobs.raw_parsing.reply_schema import RUNNING

WINDOWS = 2  # as many as the controller averages over; a cluster with long windows is read further back for them
_GRAPH = "ARRAY<STRUCT<operator: STRING, upstream: ARRAY<STRING>>>"


def span_of(settings: Settings) -> tuple[timedelta, timedelta]:
    """Return how far back windows are wanted, and the length of the longest window."""
    longest_s = max((cluster.window_s for cluster in settings.clusters.values()), default=Cluster().window_s)
    return timedelta(seconds=max(settings.apply.watch_span_s, WINDOWS * longest_s)), timedelta(seconds=longest_s)


def recent_rows(spark: SparkSession, settings: Settings, since: datetime, as_of: datetime) -> DataFrame:
    """Return the sound lines observed in ``[since, as_of)``, parsed and kept."""
    hours = hour_range(floor_hour(since), ceil_hour(as_of))
    # What was written before `since` cannot have been observed later.
    files = [file for file in list_files(spark, settings.paths.raw, hours) if file.modified_s >= since.timestamp()]
    # Kept before they are filtered: else every rule would be worked out once more for the filter.
    rows = parse_lines(read_contents(spark, files, since, as_of), settings.ingest)
    observed = F.col("observed_at").between(F.lit(since), F.lit(as_of))
    # A reply that stands in two files gives a second sample at the same time: no time passed, so it adds nothing.
    return rows.where(F.col("fault").isNull() & observed).withColumn("duplicate", F.lit(False))


def what_is_seen(spark: SparkSession, settings: Settings, graphs: DataFrame, as_of: datetime) -> DataFrame:
    """Return a row per job that was polled lately.

    Columns: ``cluster, job, seen_job_id, state, polled_at_s, running`` (JSON, operator -> parallelism at the last poll
    in state RUNNING, else at the last one), ``restarting`` (it ran lately and is being brought back) and ``windows``
    (JSON, one entry per operator and window; null without any).

    Args:
        spark: the session.
        settings: of the run.
        graphs: of :func:`spark_jobs.job_inputs.newest_rows.newest_graphs`; a plan is polled once an hour only.
        as_of: the time of the evaluation.
    """
    span, longest = span_of(settings)
    # The sample before the first window tells what was counted until then.
    rows = recent_rows(spark, settings, as_of - span - longest, as_of)
    replies = read_replies(select_event_rows(rows)).localCheckpoint()
    polls = select_polls(replies).localCheckpoint()
    names = name_operators(polls).localCheckpoint()
    # Kept, as it is read twice: the windows, and those of former ids.
    samples = build_samples(
        select_metrics_rows(rows), _with_sources(names, graphs), settings.clusters
    ).localCheckpoint()
    stops = find_stops(polls, select_failures(replies), select_checkpoints(replies))
    unsettled = find_unsettled_windows(stops, polls, settings, as_of)
    found = build_observations(samples, find_parallelism_periods(polls, as_of), unsettled)
    windows = windows_between(found, as_of - span, as_of)
    listed = F.to_json(F.collect_list(F.struct(*[name for name in windows.columns if name not in JOB])))
    return _last_polls(polls, names).join(windows.groupBy(*JOB).agg(listed.alias("windows")), JOB, "left")


def _with_sources(names: DataFrame, graphs: DataFrame) -> DataFrame:
    """Add ``is_source`` by the last known graph; without one a source is known by the name that Flink gives it."""
    known = graphs.select(*JOB, F.explode(F.from_json("operators", _GRAPH)).alias("one")).select(
        *JOB, "one.operator", (F.coalesce(F.size("one.upstream"), F.lit(0)) <= 0).alias("is_source")
    )
    return names.join(F.broadcast(known), [*JOB, "operator"], "left").withColumn("is_source", source_or_named())


def _last_polls(polls: DataFrame, names: DataFrame) -> DataFrame:
    """Return the last ``job`` reply of each job with its parallelism by operator.

    While it waits for slots, Flink shows a parallelism that is not real: then what it ran with counts.
    """
    ran_at = F.when(F.col("state") == RUNNING, F.col("observed_at"))
    last = polls.groupBy(*JOB).agg(
        F.max_by(F.struct("job_id", "state", "vector", "observed_at"), "observed_at").alias("last"),
        F.max_by(F.struct("job_id", "vector"), ran_at).alias("ran"),
    )
    is_same = F.coalesce(F.col("ran.job_id") == F.col("last.job_id"), F.lit(False))
    vertices = last.select(
        *JOB,
        F.col("last.job_id").alias("job_id"),
        F.col("last.state").alias("state"),
        F.unix_timestamp("last.observed_at").alias("polled_at_s"),
        (is_same & F.col("last.state").isin(*sorted(RESTARTING_STATES))).alias("restarting"),
        F.explode_outer(F.when(is_same, F.col("ran.vector")).otherwise(F.col("last.vector"))).alias("vertex"),
    ).withColumn("vertex_id", F.col("vertex.vertex_id"))
    named = vertices.join(
        names.select("cluster", "job_id", "vertex_id", "operator"), ["cluster", "job_id", "vertex_id"]
    )
    pairs = F.collect_list(F.struct("operator", "vertex.parallelism"))
    return named.groupBy(*JOB, F.col("job_id").alias("seen_job_id"), "state", "polled_at_s", "restarting").agg(
        F.to_json(F.map_from_entries(pairs)).alias("running")
    )


def is_up(state: str) -> bool:
    """Whether a job in this state processes."""
    return state == RUNNING
