"""Bronze to silver: what the replies about jobs say, samples, observations, rescales and job graphs.

Of the hours that are written, the rows of bronze are at hand; of the hours before, they are read from their tables.
A frame that is used more than once is kept: that keeps plans short, too.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Settings
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    JOB_GRAPHS,
    JOBS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    RESCALES,
)
from include.utc import Interval, floor_hour
from spark_jobs.few_rows import keep_few
from spark_jobs.ingest.hours import LOOKBACK, hours_where, read_few_hours, read_hours, select_hours
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.job_history import (
    disturbances,
    job_graphs,
    job_replies,
    kafka_arrivals,
    operator_names,
    rescale_history,
    restarts,
    samples,
)
from spark_jobs.job_history.observations import build_observations, select_source_samples
from spark_jobs.job_history.operator_keys import build_operator_keys
from spark_jobs.job_history.rescales import build_rescales
from spark_jobs.job_history.topic_sources import TopicSources, find_topic_sources
from spark_jobs.lake import Lake


@dataclass(frozen=True, slots=True)
class JobReplies:
    """What the replies about jobs say, of the hours that are written and as far back as it matters to them.

    Attributes:
        polls: from :func:`spark_jobs.job_history.job_replies.select_polls`.
        plans: from :func:`spark_jobs.job_history.job_replies.select_plans`.
        stops: when jobs stopped and ran again.
        names: of vertices in periods, with ``is_source``.
        changes: periods of constant parallelism.
        topic_sources: sources of the topics that the settings name; None when they name none.
        topic_ends: from :func:`spark_jobs.job_history.kafka_arrivals.read_ends`; None when they name none.
        hours: that are written.
        rescale_hours: whose rescales are written.
    """

    polls: DataFrame
    plans: DataFrame
    stops: DataFrame
    names: DataFrame
    changes: DataFrame
    topic_sources: TopicSources | None
    topic_ends: DataFrame | None
    hours: Interval
    rescale_hours: Interval


def read_job_replies(
    lake: Lake, settings: Settings, events: DataFrame, hours: Interval, pool: Executor, *, is_small: bool
) -> JobReplies:
    """Read the replies about jobs.

    Args:
        lake: with the hours before.
        settings: of the run.
        events: rows of bronze.job_events of the hours, in ``event`` what is read of their bodies already.
        hours: that are written.
        pool: works out what does not depend on each other.
        is_small: whether the rows about jobs are few.
    """
    keep = partial(keep_few, is_small=is_small)
    rescale_hours = choose_rescale_hours(lake, settings, hours)
    earlier = read_hours(lake, BRONZE_JOB_EVENTS, rescale_hours.start - LOOKBACK, hours.start)
    every = earlier.unionByName(events.drop("event"), allowMissingColumns=True)
    replies = _type_replies(earlier, events).localCheckpoint()
    polls, plans = job_replies.select_polls(replies).localCheckpoint(), job_replies.select_plans(replies)
    finding = pool.submit(keep, _find_stops(polls, replies, every))
    comparing = pool.submit(keep, job_replies.find_parallelism_periods(polls, hours.end))
    names = keep(_name_operators(polls, plans))
    topic_sources = find_topic_sources(lake, names, settings.clusters, hours.start)
    return JobReplies(
        polls=polls,
        plans=plans,
        stops=finding.result(),
        names=names,
        changes=comparing.result(),
        topic_sources=topic_sources,
        topic_ends=None if topic_sources is None else kafka_arrivals.read_ends(every).localCheckpoint(),
        hours=hours,
        rescale_hours=rescale_hours,
    )


def write_observations(
    lake: Lake, settings: Settings, replies: JobReplies, metrics: DataFrame, writes: TableWrites, *, pool: Executor
) -> DataFrame:
    """Write silver.observations and silver.rescales; returns the observations that were measured.

    Args:
        lake: with the hours before.
        settings: of the run.
        replies: about the jobs.
        metrics: rows of bronze.metrics of the hours.
        writes: of the run.
        pool: works out what does not depend on each other.
    """
    hours = replies.hours
    observed_hours = _choose_observed_hours(replies.stops, replies.rescale_hours, hours)
    unsettled = disturbances.find_unsettled_windows(
        replies.stops, replies.polls, settings, observed_hours.end, observed_hours.start
    )
    unsettling = pool.submit(unsettled.localCheckpoint)
    earlier = read_hours(lake, BRONZE_METRICS, observed_hours.start - LOOKBACK, hours.start)
    measured = samples.build_samples(
        earlier.unionByName(metrics), replies.names, replies.changes, settings.clusters
    ).localCheckpoint()

    former = read_few_hours(lake, RESCALES, replies.rescale_hours.start, hours.start)
    rescales = build_rescales(replies.stops, select_source_samples(measured), former, settings.ingest)
    writes.start_few(RESCALES, select_hours(rescales, replies.rescale_hours), hours_where(replies.rescale_hours))

    windows = build_observations(measured, replies.changes, unsettling.result())
    observations = select_hours(windows, observed_hours).localCheckpoint()
    arrivals = kafka_arrivals.find_arrivals(replies.topic_ends, replies.topic_sources, settings.clusters)
    complete = kafka_arrivals.add_arrivals(observations, arrivals, replies.topic_sources, observed_hours)
    # A task writes a file for every hour: no more tasks than can run at once.
    writes.start(OBSERVATIONS, complete, hours_where(observed_hours), core_share=1.0)
    return observations


def write_graphs(replies: JobReplies, writes: TableWrites) -> None:
    """Write silver.job_graphs, jobs and operator_keys.

    Args:
        replies: about the jobs.
        writes: of the run.
    """
    hours = replies.hours
    where = hours_where(hours)
    writes.start_few(JOBS, select_hours(job_graphs.build_jobs(replies.polls, replies.plans), hours), where)
    graphs = keep_few(job_graphs.build_graphs(replies.polls, replies.plans), is_small=writes.is_small)
    writes.start_few(OPERATOR_KEYS, select_hours(build_operator_keys(graphs), hours), where)
    partitions = kafka_arrivals.count_partitions(replies.topic_ends, replies.topic_sources)
    own = select_hours(job_graphs.select_job_graphs(graphs), hours)
    writes.start_few(JOB_GRAPHS, job_graphs.add_partitions(own, partitions), where)


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


def _choose_observed_hours(stops: DataFrame, rescale_hours: Interval, hours: Interval) -> Interval:
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


def _type_replies(earlier_events: DataFrame, events: DataFrame) -> DataFrame:
    unread = events.select("event").schema["event"].dataType
    earlier = job_replies.read_replies(earlier_events.withColumn("event", F.lit(None).cast(unread)))
    return job_replies.select_usable(earlier).unionByName(job_replies.read_replies(events))


def _name_operators(polls: DataFrame, plans: DataFrame) -> DataFrame:
    """Return the names of vertices, with ``is_source``."""
    sources = job_graphs.find_sources(plans)
    named = operator_names.name_operators(polls).join(sources, ["cluster", "job_id", "vertex_id"], "left")
    return named.withColumn("is_source", samples.source_or_named())


def _find_stops(polls: DataFrame, replies: DataFrame, events: DataFrame) -> DataFrame:
    """Return when jobs stopped and ran again, by what Flink tells of its rescales where it does."""
    result = restarts.find_stops(
        polls,
        job_replies.select_failures(replies),
        job_replies.select_checkpoints(replies),
        job_replies.select_state_moves(replies),
    )
    return rescale_history.date_stops(result, rescale_history.select_told_rescales(events))
