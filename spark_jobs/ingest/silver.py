"""The silver tables of the hours that an ingestion wrote, made from the rows of bronze."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, RESCALES
from include.utc import Interval, floor_hour
from spark_jobs.ingest.hours import LOOKBACK, hours_where, read_hours, write_hours
from spark_jobs.job_history.job_graphs import job_graphs, source_vertices
from spark_jobs.job_history.job_replies import (
    checkpoints,
    failures,
    job_polls,
    job_replies,
    operators,
    parallelism_changes,
    plan_replies,
)
from spark_jobs.job_history.observations import observations
from spark_jobs.job_history.rescales import rescales
from spark_jobs.job_history.restarts import restart_events
from spark_jobs.job_history.samples import source_or_named, source_samples, vertex_samples
from spark_jobs.lake import Lake
from spark_jobs.session import threads


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What the replies about jobs say, for the hours that a run writes and those before that it looks back on.

    Attributes:
        polls: from :func:`spark_jobs.job_history.job_replies.job_polls`.
        names: from :func:`spark_jobs.job_history.job_replies.operators`, with ``is_source``.
        changes: from :func:`spark_jobs.job_history.job_replies.parallelism_changes`.
        plans: from :func:`spark_jobs.job_history.job_replies.plan_replies`.
        stops: from :func:`spark_jobs.job_history.restarts.restart_events`.
        made_from: start of the hours whose observations are made again.
    """

    polls: DataFrame
    names: DataFrame
    changes: DataFrame
    plans: DataFrame
    stops: DataFrame
    made_from: datetime


def job_history(lake: Lake, settings: Settings, seen: DataFrame, hours: Interval) -> JobHistory:
    """Return what the replies about jobs say.

    Observations are made again from the hour of a stop that only a reply of these hours showed, because it marks
    windows.

    Args:
        lake: to read what was written before from.
        settings: of clusters and ingestion.
        seen: the replies of these hours, from :func:`spark_jobs.job_history.job_replies.parsed_replies`.
        hours: those that are written.
    """
    looked_back = _look_back(settings, hours.start)
    earlier = read_hours(lake, BRONZE_JOB_EVENTS, looked_back - LOOKBACK, hours.start)
    # Checkpoints keep the plans short: each of these frames is used several times.
    replies = job_replies(earlier).unionByName(seen).localCheckpoint()
    polls, plans = job_polls(replies).localCheckpoint(), plan_replies(replies)
    with threads(lake.spark) as pool:
        of_names = pool.submit(_with_sources(operators(polls), plans).localCheckpoint)
        of_changes = pool.submit(parallelism_changes(polls, hours.end).localCheckpoint)
        stops = restart_events(polls, failures(replies), checkpoints(replies)).localCheckpoint()
    first = _first_marked_hour(stops, hours.start, looked_back)
    return JobHistory(polls, of_names.result(), of_changes.result(), plans, stops, first)


def _with_sources(names: DataFrame, plans: DataFrame) -> DataFrame:
    found = names.join(source_vertices(plans), ["cluster", "job_id", "vertex_id"], "left")
    return found.withColumn("is_source", source_or_named())


def write_job_graphs(lake: Lake, jobs: JobHistory, hours: Interval) -> None:
    """Make silver.job_graphs for full hours."""
    graphs = job_graphs(jobs.polls, jobs.plans, jobs.names).where(hours_where(hours.start, hours.end))
    write_hours(lake, JOB_GRAPHS, graphs, hours.start, hours.end)


def job_samples(lake: Lake, settings: Settings, jobs: JobHistory, written: DataFrame, hours: Interval) -> DataFrame:
    """Return the samples of the hours whose observations are made, kept.

    Args:
        lake: to read what was written before from.
        settings: of clusters and ingestion.
        jobs: from :func:`job_history`.
        written: the rows of bronze.metrics of these hours: at hand still, so that they need not be read again.
        hours: those that are written.
    """
    metrics = read_hours(lake, BRONZE_METRICS, jobs.made_from - LOOKBACK, hours.start).unionByName(written)
    return vertex_samples(metrics, jobs.names, settings.clusters).localCheckpoint()


def write_rescales(lake: Lake, settings: Settings, jobs: JobHistory, samples: DataFrame, hours: Interval) -> None:
    """Make silver.rescales, from ``late_allowance_h`` hours before: a catch-up may end hours after its stop."""
    looked_back = _look_back(settings, hours.start)
    earlier = read_hours(lake, RESCALES, looked_back, hours.start)
    found = rescales(jobs.stops, source_samples(samples), jobs.names, earlier, settings.ingest)
    write_hours(lake, RESCALES, found.where(hours_where(looked_back, hours.end)), looked_back, hours.end)


def job_observations(jobs: JobHistory, samples: DataFrame, unsettled: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of silver.observations from ``made_from`` on."""
    return observations(samples, jobs.changes, unsettled).where(hours_where(jobs.made_from, hours.end))


def write_observations(lake: Lake, rows: DataFrame, jobs: JobHistory, hours: Interval) -> None:
    """Write what :func:`job_observations` made."""
    # A task writes a file for every hour: no more tasks than can run at once.
    tasks = lake.spark.sparkContext.defaultParallelism
    write_hours(lake, OBSERVATIONS, rows.coalesce(tasks), jobs.made_from, hours.end)


def _look_back(settings: Settings, start: datetime) -> datetime:
    return start - timedelta(hours=settings.ingest.late_allowance_h)


def _first_marked_hour(stops: DataFrame, start: datetime, earliest: datetime) -> datetime:
    """Return the hour of the earliest stop before ``start`` that only a later reply showed, else ``start``."""
    marked = stops.where((F.col("detected_at") >= F.lit(start)) & (F.col("started_at") < F.lit(start)))
    row = marked.agg(F.min(F.unix_micros("started_at")).alias("first")).first()
    if row is None or row["first"] is None:
        return start
    return max(earliest, floor_hour(datetime.fromtimestamp(row["first"] / 1e6, tz=start.tzinfo)))
