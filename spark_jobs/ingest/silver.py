"""Bronze to silver, frame by frame: what the replies about jobs say, samples, observations, rescales and job graphs.

Of the hours that are written, the rows of bronze are at hand; of the hours before, they are read from their tables.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, RESCALES
from include.utc import Interval, floor_hour
from spark_jobs.ingest.hours import LOOKBACK, read_hours, select_hours
from spark_jobs.job_history import (
    disturbances,
    job_graphs,
    job_replies,
    kafka_arrivals,
    observations,
    operator_names,
    rescale_history,
    rescales,
    restarts,
    samples,
    topic_sources,
)
from spark_jobs.job_history.topic_sources import TopicSources
from spark_jobs.lake import Lake


def choose_rescale_hours(lake: Lake, settings: Settings, hours: Interval) -> Interval:
    """Return the hours whose rescales are written: a catch-up may end hours after its stop.

    What bronze does not have any more (``retention.bronze_days``) is not made anew from nothing.
    """
    start = hours.start - timedelta(hours=settings.ingest.late_allowance_h)
    if settings.retention.bronze_days is None:
        return Interval(start, hours.end)
    row = lake.read(BRONZE_JOB_EVENTS).agg(F.min("date").alias("first")).first()
    first = None if row is None else row["first"]
    retained_from = hours.start if first is None else datetime.combine(first, time(), UTC) + LOOKBACK
    return Interval(min(max(start, retained_from), hours.start), hours.end)


def read_earlier_events(lake: Lake, rescale_hours: Interval, hours: Interval) -> DataFrame:
    """Return the rows of bronze.job_events before these hours, as far back as they matter to them."""
    return read_hours(lake, BRONZE_JOB_EVENTS, rescale_hours.start - LOOKBACK, hours.start)


def read_earlier_metrics(lake: Lake, observed_hours: Interval, hours: Interval) -> DataFrame:
    """Return the rows of bronze.metrics before these hours from which observations are made."""
    return read_hours(lake, BRONZE_METRICS, observed_hours.start - LOOKBACK, hours.start)


def read_earlier_rescales(lake: Lake, rescale_hours: Interval, hours: Interval) -> DataFrame:
    """Return the rows of silver.rescales before these hours that may be completed."""
    return read_hours(lake, RESCALES, rescale_hours.start, hours.start)


def type_replies(earlier_events: DataFrame, events: DataFrame) -> DataFrame:
    """Return the replies about jobs."""
    unread = events.select("event").schema["event"].dataType
    earlier = job_replies.read_replies(earlier_events.withColumn("event", F.lit(None).cast(unread)))
    return job_replies.select_usable(earlier).unionByName(job_replies.read_replies(events))


def name_operators(polls: DataFrame, plans: DataFrame) -> DataFrame:
    """Return the names of vertices, with ``is_source``."""
    sources = job_graphs.find_sources(plans)
    named = operator_names.name_operators(polls).join(sources, ["cluster", "job_id", "vertex_id"], "left")
    return named.withColumn("is_source", samples.source_or_named())


def find_parallelism(polls: DataFrame, hours: Interval) -> DataFrame:
    """Return periods of constant parallelism."""
    return job_replies.find_parallelism_periods(polls, hours.end)


def find_stops(polls: DataFrame, replies: DataFrame, earlier_events: DataFrame, events: DataFrame) -> DataFrame:
    """Return when jobs stopped and ran again."""
    result = restarts.find_stops(
        polls,
        job_replies.select_failures(replies),
        job_replies.select_checkpoints(replies),
        job_replies.select_state_moves(replies),
    )
    every = earlier_events.unionByName(events.drop("event"), allowMissingColumns=True)
    return rescale_history.date_stops(result, rescale_history.select_told_rescales(every))


def choose_observed_hours(stops: DataFrame, rescale_hours: Interval, hours: Interval) -> Interval:
    """Return the hours whose observations are written.

    Because a stop marks windows, they begin with the hour of the earliest stop that only a reply of these hours showed.
    """
    start = hours.start
    shown_late = stops.where((F.col("detected_at") >= F.lit(start)) & (F.col("started_at") < F.lit(start)))
    row = shown_late.agg(F.min(F.unix_micros("started_at")).alias("first")).first()
    if row is None or row["first"] is None:
        return hours
    hour = floor_hour(datetime.fromtimestamp(row["first"] / 1e6, tz=start.tzinfo))
    return Interval(max(rescale_hours.start, hour), hours.end)


def find_unsettled_windows(
    stops: DataFrame, polls: DataFrame, settings: Settings, observed_hours: Interval
) -> DataFrame:
    """Return the windows in which a job stopped or started."""
    return disturbances.find_unsettled_windows(stops, polls, settings, observed_hours.end, observed_hours.start)


def make_samples(
    earlier_metrics: DataFrame, metrics: DataFrame, names: DataFrame, changes: DataFrame, settings: Settings
) -> DataFrame:
    """Return the samples of the hours whose observations are written."""
    return samples.build_samples(earlier_metrics.unionByName(metrics), names, changes, settings.clusters)


def make_observations(all_samples: DataFrame, changes: DataFrame, unsettled: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of silver.observations."""
    return select_hours(observations.build_observations(all_samples, changes, unsettled), hours)


def find_topic_sources(lake: Lake, names: DataFrame, settings: Settings, hours: Interval) -> TopicSources | None:
    """Return the sources of the topics that the settings name; None when they name none."""
    return topic_sources.find_topic_sources(lake, names, settings.clusters, hours.start)


def find_arrivals(
    earlier_events: DataFrame, events: DataFrame, sources: TopicSources | None, settings: Settings
) -> DataFrame | None:
    """Return what arrived in the topics of sources; None when the settings name no topics."""
    return kafka_arrivals.find_arrivals(
        earlier_events.unionByName(events.drop("event"), allowMissingColumns=True), sources, settings.clusters
    )


def add_arrivals(
    measured: DataFrame, arrivals: DataFrame | None, sources: TopicSources | None, hours: Interval
) -> DataFrame:
    """Return the rows of silver.observations, with what arrived as the target data rate of sources."""
    return kafka_arrivals.add_arrivals(measured, arrivals, sources, hours)


def add_partitions(graphs: DataFrame, events: DataFrame, sources: TopicSources | None) -> DataFrame:
    """Return the rows of silver.job_graphs, with the partitions of the topics that sources read."""
    return job_graphs.add_partitions(graphs, kafka_arrivals.count_partitions(events, sources))


def make_rescales(stops: DataFrame, sources: DataFrame, earlier_rescales: DataFrame, settings: Settings) -> DataFrame:
    """Return the rows of silver.rescales."""
    return rescales.build_rescales(stops, sources, earlier_rescales, settings.ingest)
