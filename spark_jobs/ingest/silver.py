"""The silver tables of the hours that an ingestion wrote, made from the rows of bronze."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.intervals import Interval, floor_hour
from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, JOB_GRAPHS, OBSERVATIONS, RESCALES, Table
from spark_jobs.ingest.job_graphs import job_graphs, source_vertices
from spark_jobs.ingest.job_replies import (
    checkpoints,
    failures,
    job_polls,
    job_replies,
    operators,
    parallelism_changes,
    plan_replies,
)
from spark_jobs.ingest.observations import observations
from spark_jobs.ingest.rescales import disturbed_windows, job_starts, rescales
from spark_jobs.ingest.restarts import restart_events
from spark_jobs.ingest.samples import source_samples, vertex_samples, window_length_s
from spark_jobs.lake import Lake
from spark_jobs.session import threads

# The sample and the reply before the first of an hour stand in the hour before.
LOOKBACK = timedelta(hours=1)


def hours_where(start: datetime, end: datetime) -> str:
    """Return the exact slice ``[start, end)`` (full hours, UTC) as a predicate on ``date`` and ``hour``."""

    def beyond(moment: datetime, order: str) -> str:
        day = f"DATE'{moment:%Y-%m-%d}'"
        return f"(date {order[0]} {day} OR (date = {day} AND hour {order} {moment.hour}))"

    return f"{beyond(start, '>=')} AND {beyond(end, '<')}"


def read_hours(lake: Lake, table: Table, start: datetime, end: datetime) -> DataFrame:
    """Read the rows of the hours ``[start, end)`` of a table with day and hour partitions."""
    return lake.read(table).where(hours_where(start, end))


def write_hours(lake: Lake, table: Table, rows: DataFrame, start: datetime, end: datetime) -> None:
    """Replace the hours ``[start, end)`` of a table."""
    lake.replace(table, rows, hours_where(start, end))


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What the replies about jobs say, for the hours that a run writes and those before that it looks back on.

    Attributes:
        polls: from :func:`spark_jobs.ingest.job_replies.job_polls`.
        names: from :func:`spark_jobs.ingest.job_replies.operators`.
        sources: from :func:`spark_jobs.ingest.job_graphs.source_vertices`.
        stops: from :func:`spark_jobs.ingest.restarts.restart_events`.
        made_from: start of the hours whose observations are made again.
    """

    polls: DataFrame
    names: DataFrame
    sources: DataFrame
    stops: DataFrame
    made_from: datetime


def write_job_graphs(lake: Lake, settings: Settings, seen: DataFrame, hours: Interval) -> JobHistory:
    """Make silver.job_graphs for full hours; returns what else the replies about jobs say.

    Observations are made again from the hour of a stop that only a reply of these hours showed, because it marks
    windows.

    Args:
        lake: to read what was written before from, and to write to.
        settings: of clusters and ingestion.
        seen: the replies of these hours, from :func:`spark_jobs.ingest.job_replies.parsed_replies`.
        hours: those that are written.
    """
    start, end = hours.start, hours.end
    looked_back = _look_back(settings, start)
    earlier = read_hours(lake, BRONZE_JOB_EVENTS, looked_back - LOOKBACK, start)
    # Checkpoints keep the plans short: each of these frames is used several times.
    replies = job_replies(earlier).unionByName(seen).localCheckpoint()
    polls, plans = job_polls(replies).localCheckpoint(), plan_replies(replies)
    names = operators(polls).localCheckpoint()
    graphs = job_graphs(polls, plans, names).where(hours_where(start, end))
    with threads(lake.spark) as pool:
        writing = pool.submit(write_hours, lake, JOB_GRAPHS, graphs, start, end)
        stops = restart_events(polls, failures(replies), checkpoints(replies)).localCheckpoint()
    writing.result()
    return JobHistory(polls, names, source_vertices(plans), stops, _first_marked_hour(stops, start, looked_back))


def write_samples(lake: Lake, settings: Settings, jobs: JobHistory, written: DataFrame, hours: Interval) -> None:
    """Make silver.rescales and silver.observations for full hours.

    Rescales are made again from ``late_allowance_h`` hours before, because a catch-up may end hours after its stop.

    Args:
        lake: to read what was written before from, and to write to.
        settings: of clusters and ingestion.
        jobs: from :func:`write_job_graphs`.
        written: the rows of bronze.metrics of these hours: at hand still, so that they need not be read again.
        hours: those that are written.
    """
    rules, stops, start, end = settings.ingest, jobs.stops, hours.start, hours.end
    looked_back = _look_back(settings, start)
    keys = ["cluster", "job_id", "vertex_id"]
    # Without a plan yet, a source is known by the name that Flink gives it.
    is_source = F.coalesce("is_source", F.col("operator").startswith("Source: "))
    operators = jobs.names.join(jobs.sources, keys, "left").withColumn("is_source", is_source)
    metrics = read_hours(lake, BRONZE_METRICS, jobs.made_from - LOOKBACK, start).unionByName(written)
    samples = vertex_samples(metrics, operators, settings.clusters).localCheckpoint()

    def write_rescales() -> None:
        earlier = read_hours(lake, RESCALES, looked_back, start)
        found = rescales(stops, source_samples(samples), jobs.names, earlier, rules)
        write_hours(lake, RESCALES, found.where(hours_where(looked_back, end)), looked_back, end)

    with threads(lake.spark) as pool:
        of_rescales = pool.submit(write_rescales)
        # A task that starts counts as busy, and its gauges show their first value: no measurement of its work.
        unsettled = stops.select("cluster", "job_id", "started_at", "ended_at").unionByName(job_starts(jobs.polls))
        touched = disturbed_windows(unsettled, window_length_s(settings.clusters), end, rules.settle_s)
        found = observations(samples, parallelism_changes(jobs.polls, end), touched)
        # A task writes a file for every hour: no more tasks than can run at once.
        tasks = lake.spark.sparkContext.defaultParallelism
        rows = found.where(hours_where(jobs.made_from, end)).coalesce(tasks)
        write_hours(lake, OBSERVATIONS, rows, jobs.made_from, end)
    of_rescales.result()


def _look_back(settings: Settings, start: datetime) -> datetime:
    return start - timedelta(hours=settings.ingest.late_allowance_h)


def _first_marked_hour(stops: DataFrame, start: datetime, earliest: datetime) -> datetime:
    """Return the hour of the earliest stop before ``start`` that only a later reply showed, else ``start``."""
    marked = stops.where((F.col("detected_at") >= F.lit(start)) & (F.col("started_at") < F.lit(start)))
    row = marked.agg(F.min(F.unix_micros("started_at")).alias("first")).first()
    if row is None or row["first"] is None:
        return start
    return max(earliest, floor_hour(datetime.fromtimestamp(row["first"] / 1e6, tz=start.tzinfo)))
