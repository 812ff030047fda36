"""What planning reads: the state of every job, and the newest forecast of each."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.tables import Table
from spark_jobs.few_rows import read_newest
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_column

# A job unseen for longer has left; one seen since then, but not lately, is refused by name.
LOOKBACK = timedelta(days=2)
JOB = ["cluster", "job"]
LIMITS = ("max_parallelism", "partitions", "ship_strategies", "slot_sharing_group")
STALE = "stale: "  # how a fallback_reason begins that says so, and nothing else
QUANTILES = ["q10_per_s", "q50_per_s", "q90_per_s", "q95_per_s"]
OF_EVENTS = ["event_factor", "event_spread"]
"""What of a forecast's quantiles is that of an event; null in a bin without one."""


def within_lookback(as_of: datetime) -> Column:
    """Return the partition filter on ``date`` for rows that can matter at ``as_of``."""
    return F.col("date").between(F.lit((as_of - LOOKBACK).date()), F.lit(as_of.date()))


def read_newest_hours(lake: Lake, table: Table, as_of: datetime, version: int | None = None) -> DataFrame:
    """Return the rows of silver.job_graphs or silver.jobs of each job's newest hour by ``as_of``, as a local frame."""
    return read_newest(lake, table, as_of - LOOKBACK, as_of, order=("date", "hour"), version=version)


def current_operators(graphs: DataFrame, as_of: datetime) -> DataFrame:
    """Return the rows of each job's newest graph as last seen by ``as_of``.

    A resubmitted job has a new id; operators of the old one are left out.
    """
    observed = graphs.where(within_lookback(as_of) & (F.col("observed_at") <= timestamp_column(as_of)))
    hour = F.struct("date", "hour")
    newest = observed.groupBy(*JOB).agg(
        F.max(F.struct(hour.alias("at"), "observed_at", "job_id")).alias("newest"),
    )
    current = observed.join(newest, JOB, how="inner").where(
        (hour == F.col("newest.at")) & (F.col("job_id") == F.col("newest.job_id"))
    )
    return current.drop("newest")


def newest_graphs(graphs: DataFrame, as_of: datetime) -> DataFrame:
    """Return one row per job: its id and its operators, as JSON, as last seen by ``as_of``."""
    operator = F.struct("position", "operator", "vertex_id", "upstream", "parallelism", "status", *LIMITS)
    current = (
        current_operators(graphs, as_of)
        .groupBy(*JOB, "job_id")
        .agg(
            F.to_json(F.sort_array(F.collect_list(operator))).alias("operators"), F.max("observed_at").alias("seen_at")
        )
    )
    return current.select(*JOB, "job_id", "operators", "seen_at")


def newest_jobs(jobs: DataFrame, as_of: datetime) -> DataFrame:
    """Return one row per job as last seen by ``as_of``: ``state, job_type, ended_at, polled_at``."""
    observed = jobs.where(within_lookback(as_of) & (F.col("observed_at") <= timestamp_column(as_of)))
    one = F.struct("state", "job_type", "ended_at", F.col("observed_at").alias("polled_at"))
    newest = observed.groupBy(*JOB).agg(F.max_by(one, F.struct("date", "hour", "observed_at")).alias("newest"))
    return newest.select(*JOB, "newest.*")


def observed_until(observations: DataFrame, as_of: datetime) -> DataFrame:
    """Return the end of each job's last window by ``as_of``, and what was measured of it.

    Returns:
        One row per job: ``observed_until``, ``is_busy_measured`` and ``unseen_sources``, a JSON list of the sources
        that were monitored at work while nothing told their load.
    """
    window_end = F.timestamp_seconds(F.unix_timestamp("window_start") + F.col("window_s"))
    # A window that only brokers tell of has no sample: nothing of the job was seen in it.
    measured = observations.where(within_lookback(as_of) & (F.coalesce("samples", F.lit(1)) > 0))
    ended = measured.withColumn("window_end", window_end)
    source, is_reported = F.when(F.col("is_source"), F.col("operator")), F.col("target_data_rate_per_s").isNotNull()
    # One sample alone makes no difference of counters.
    is_monitored = (F.col("samples") >= 2) | (F.col("busy_share") > 0)
    monitored, reported = F.collect_set(F.when(is_monitored, source)), F.collect_set(F.when(is_reported, source))
    return (
        ended.where(F.col("window_end") <= timestamp_column(as_of))
        .groupBy(*JOB)
        .agg(
            F.max("window_end").alias("observed_until"),
            F.max(F.coalesce(F.col("busy_share") > 0, F.lit(False))).alias("is_busy_measured"),
            F.to_json(F.array_sort(F.array_except(monitored, reported))).alias("unseen_sources"),
        )
    )


def clusters_past(observations: DataFrame, horizon_end: datetime) -> DataFrame:
    """Return the clusters that were observed after the horizon's end: to plan for them would be to plan the past."""
    later = observations.where(
        (F.col("date") >= F.lit(horizon_end.date())) & (F.col("window_start") > timestamp_column(horizon_end))
    )
    return later.groupBy("cluster").agg(F.max("window_start").alias("observed_after"))


def job_states(
    graphs: DataFrame, jobs: DataFrame, observations: DataFrame, as_of: datetime, horizon: timedelta
) -> DataFrame:
    """Return one row per job: what runs, since when it is known, and whether the horizon is past already.

    Every job of the lookback has one; ``operators`` is null of a job without a graph.
    """
    states = (
        newest_graphs(graphs, as_of)
        .join(observed_until(observations, as_of), JOB, how="full")
        .join(newest_jobs(jobs, as_of), JOB, how="full")
        .join(F.broadcast(clusters_past(observations, as_of + horizon)), "cluster", how="left")
    )
    return states.select(
        *JOB,
        "job_id",
        "operators",
        F.unix_timestamp("seen_at").alias("seen_at_s"),
        F.unix_timestamp("observed_until").alias("observed_until_s"),
        "state",
        "job_type",
        F.unix_timestamp("ended_at").alias("ended_at_s"),
        "is_busy_measured",
        "unseen_sources",
        F.unix_timestamp("observed_after").alias("observed_after_s"),
    )


def newest_forecasts(forecasts: DataFrame, as_of: datetime) -> DataFrame:
    """Return one row per job with its newest forecast by ``as_of``: ``bins`` of all its sources, as structs.

    ``fallback`` of a bin is why its source's forecast is none to plan ahead with, null where it is one.
    """
    made = forecasts.where(within_lookback(as_of) & (F.col("as_of") <= timestamp_column(as_of)))
    newest = made.groupBy(*JOB).agg(F.max("as_of").alias("as_of"))
    looks_ahead = ~F.col("fallback_reason").startswith(STALE)
    start = F.unix_timestamp("bin_start").alias("bin_start_s")
    fallback = F.when(looks_ahead, F.col("fallback_reason")).alias("fallback")
    one = F.struct("operator", start, "bin_s", fallback, *QUANTILES, *OF_EVENTS)
    return (
        made.join(F.broadcast(newest), [*JOB, "as_of"], how="inner")
        .groupBy(*JOB)
        .agg(
            F.collect_list(one).alias("bins"),
            F.max(F.unix_timestamp("as_of")).alias("forecast_as_of_s"),
            F.max("forecast_version").alias("forecast_version"),
        )
    )
