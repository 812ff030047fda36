"""Bronze to silver: what the replies about jobs say, samples, observations, rescales and job graphs.

Of the hours that are written, the rows of bronze are at hand; of the hours before, they are read from their tables.
A frame that is used more than once is kept: that keeps plans short, too. All that comes of the replies about jobs alone
is worked out by one Spark job.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.arrow_rows import arrow_rows
from include.settings import Cluster, Settings
from include.tables import (
    BRONZE_JOB_EVENTS,
    JOB_GRAPHS,
    JOBS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    RESCALES,
)
from include.utc import Interval
from spark_jobs.ingest.earlier_replies import read_earlier_replies
from spark_jobs.ingest.hours import LOOKBACK, has_files, hours_where, select_hours
from spark_jobs.ingest.late_stops import find_late_stops, read_disturbed, read_samples_of_late
from spark_jobs.ingest.quality import Counts, count_windows
from spark_jobs.ingest.raw_input import RawInput
from spark_jobs.ingest.samples_before import read_samples_before
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.job_history import (
    disturbances,
    job_graphs,
    job_replies,
    kafka_arrivals,
    operator_names,
    rescale_history,
    restarts,
    sample_placement,
)
from spark_jobs.job_history.job_shapes import read_shapes
from spark_jobs.job_history.known_jobs import KnownJobs
from spark_jobs.job_history.observations import measure_windows
from spark_jobs.job_history.operator_keys import build_operator_keys
from spark_jobs.job_history.rescales import build_rescales, find_spans
from spark_jobs.job_history.stop_effects import EFFECT_COLUMNS
from spark_jobs.job_history.topic_sources import TopicSources, find_topic_sources
from spark_jobs.lake import Lake, from_table, keep
from spark_jobs.one_job import collect_together
from spark_jobs.raw_parsing import bronze_rows


@dataclass(frozen=True, slots=True)
class JobReplies:
    """What the replies about jobs say, of the hours that are written and as far back as it matters to them.

    Attributes:
        named: vertices that replies of the hour before named.
        stops: when jobs stopped and ran again.
        starts: from :func:`spark_jobs.job_history.disturbances.find_starts_and_restores`.
        names: of vertices in periods, with ``is_source`` and ``feeders``.
        aligned: from :func:`spark_jobs.job_history.job_replies.select_aligned`.
        changes: periods of constant parallelism.
        jobs: rows of silver.jobs of the hours that are written.
        graphs: from :func:`spark_jobs.job_history.job_graphs.build_graphs`, of these hours and the one before.
        topic_sources: sources of the topics that the settings name; None when they name none.
        topic_ends: from :func:`spark_jobs.job_history.kafka_arrivals.read_ends`; None when they name none.
        hours: that are written.
        rescale_hours: whose rescales are written.
    """

    named: pa.Table
    stops: list[dict[str, Any]]
    starts: pa.Table
    names: pa.Table
    aligned: pa.Table
    changes: pa.Table
    jobs: pa.Table
    graphs: pa.Table
    topic_sources: TopicSources | None
    topic_ends: DataFrame | None
    hours: Interval
    rescale_hours: Interval


def read_job_replies(
    lake: Lake,
    settings: Settings,
    events: DataFrame,
    raw: RawInput,
    *,
    earlier: DataFrame,
    rescale_hours: Interval,
) -> JobReplies:
    """Read the replies about jobs, of the hours that are written and those before.

    Events have in ``event`` what is read of their bodies already; the earlier ones go as far back as rescales are
    written, and a look-back before these.
    """
    hours = raw.hours
    every = earlier.unionByName(events, allowMissingColumns=True).drop("event")
    # What is used several times is kept when it is first worked out.
    before = job_replies.select_usable(job_replies.read_replies(earlier))
    replies = keep(before.unionByName(job_replies.read_replies(events)))
    polls = keep(job_replies.select_polls(replies, settings.clusters))
    plans = job_replies.select_plans(replies)
    frames = {
        "named": bronze_rows.select_named_before(earlier.where(F.col("observed_at") >= F.lit(hours.start - LOOKBACK))),
        "stops": _find_stops(polls, replies),
        "told": rescale_history.select_told_rescales(every),
        "starts": disturbances.sum_up_starts(polls),
        "names": _name_operators(polls, plans),
        "aligned": job_replies.select_aligned(polls, job_replies.select_checkpoints(replies)),
        "changes": job_replies.find_parallelism_periods(polls, hours.end),
        "jobs": select_hours(job_graphs.build_jobs(polls, plans), hours),
        "graphs": select_hours(job_graphs.build_graphs(polls, plans), Interval(hours.start - LOOKBACK, hours.end)),
    }
    later = _read_later(lake, settings, hours)
    if later is not None:  # hours of before are ingested again: their stops ended, or showed, in hours that are there
        replying = replies.unionByName(job_replies.select_usable(job_replies.read_replies(later)))
        events_read = every.unionByName(later.drop("event"), allowMissingColumns=True)
        frames["stops"] = _find_stops(job_replies.select_polls(replying, settings.clusters), replying)
        frames["told"] = rescale_history.select_told_rescales(events_read)
    made = collect_together(frames)
    stops = rescale_history.date_stops(made.pop("stops"), made.pop("told"))
    topic_sources = find_topic_sources(lake, made["names"], settings.clusters, hours.start)
    return JobReplies(
        **made,
        stops=stops,
        topic_sources=topic_sources,
        topic_ends=None if topic_sources is None else keep(kafka_arrivals.read_ends(every)),
        hours=hours,
        rescale_hours=rescale_hours,
    )


def write_observations(
    lake: Lake,
    settings: Settings,
    replies: JobReplies,
    metrics: DataFrame,
    writes: TableWrites,
    *,
    interval: Interval,
) -> Counts:
    """Write silver.observations and silver.rescales; returns what was counted of the windows that were measured.

    Metrics are rows of bronze.metrics of the hours, in ``sample`` what of them is measured.
    """
    hours, stops = replies.hours, replies.stops
    late = find_late_stops(stops, hours, replies.rescale_hours.start)
    windows_s = defaultdict(lambda: Cluster().window_s, {name: one.window_s for name, one in settings.clusters.items()})
    unsettled = disturbances.find_unsettled_windows(
        stops, replies.starts, windows_s, settings.ingest.settle_s, late.hours
    )
    stopped = _find_stopped(replies)
    shapes = read_shapes(replies.names, replies.aligned, stopped)
    spans = find_spans(stops, settings.ingest, hours)
    known = KnownJobs(replies.names, replies.changes, unsettled, windows_s=windows_s, shapes=shapes, stops=spans)
    jobs = lake.spark.sparkContext.broadcast(known)
    earlier = read_samples_before(lake, hours.start, settings.clusters, stopped)
    of_late = read_samples_of_late(lake, late, hours.start)
    if of_late is not None:
        earlier = earlier.unionByName(of_late)
    replies_read = earlier.unionByName(metrics.select(*sample_placement.REPLY_KEY, "sample"))
    placed = sample_placement.place_samples(replies_read, replies.names)
    measured = keep(measure_windows(placed, jobs, int(hours.start.timestamp())))
    observations = select_hours(measured, hours).select(*OBSERVATIONS.columns)
    arrivals = kafka_arrivals.find_arrivals(replies.topic_ends, replies.topic_sources, settings.clusters)
    if late.job_ids:
        observations = observations.unionByName(read_disturbed(lake, late, hours.start, jobs))
    complete = kafka_arrivals.add_arrivals(observations, arrivals, replies.topic_sources, late.hours)
    # A task writes a file for every day: no more tasks than can run at once.
    writes.start(OBSERVATIONS, complete, hours_where(late.hours), core_share=1.0).result()
    rescales = _find_rescales(lake, stops, measured, replies.rescale_hours) if spans.spans else []
    writes.start(RESCALES, arrow_rows(RESCALES, rescales), hours_where(replies.rescale_hours))
    return count_windows(lake, interval)


def _find_rescales(
    lake: Lake, stops: list[dict[str, Any]], measured: DataFrame, hours: Interval
) -> list[dict[str, Any]]:
    effects = measured.where("started_at IS NOT NULL").select(*EFFECT_COLUMNS).toArrow().to_pylist()
    former = lake.few(RESCALES).read(list(RESCALES.columns), hours.start.date(), hours.end.date(), hours_where(hours))
    rows = build_rescales(stops, effects, former.to_pylist())
    return [row for row in rows if hours.start <= row["started_at"] < hours.end]


def _find_stopped(replies: JobReplies) -> set[str]:
    """Return the ids of all jobs that bore the name of one that stopped."""
    stopped, names = {(stop["cluster"], stop["job"]) for stop in replies.stops}, replies.names
    columns = (names[name].to_pylist() for name in ("cluster", "job", "job_id"))
    return {job_id for cluster, job, job_id in zip(*columns, strict=True) if (cluster, job) in stopped}


def write_graphs(replies: JobReplies, writes: TableWrites) -> None:
    """Write silver.job_graphs, jobs and operator_keys."""
    where, hours = hours_where(replies.hours), replies.hours
    writes.start(JOBS, replies.jobs, where)
    every = replies.graphs.to_pylist()
    keys = [row for row in build_operator_keys(every) if hours.start <= row["observed_at"] < hours.end]
    writes.start(OPERATOR_KEYS, arrow_rows(OPERATOR_KEYS, keys), where)
    shown = [row for row in every if row["rank"] == 1 and hours.start <= row["observed_at"] < hours.end]
    graphs = arrow_rows(JOB_GRAPHS, shown)
    partitions = kafka_arrivals.count_partitions(replies.topic_ends, replies.topic_sources)
    if partitions is None:
        writes.start(JOB_GRAPHS, graphs, where)
    else:
        rows = from_table(partitions.sparkSession, JOB_GRAPHS, graphs)
        writes.start(JOB_GRAPHS, job_graphs.add_partitions(rows, partitions).coalesce(1), where)


def choose_rescale_hours(lake: Lake, settings: Settings, hours: Interval) -> Interval:
    """Return the hours whose rescales are written: a catch-up may end hours after its stop.

    What bronze does not have any more (``retention.bronze_days``) is not made anew from nothing.
    """
    start = hours.start - timedelta(hours=settings.ingest.late_allowance_h)
    if settings.retention.bronze_days is None:
        return Interval(start, hours.end)
    first = min(lake.few(BRONZE_JOB_EVENTS).read_files(), default=None)
    retained_from = hours.start if first is None else datetime.combine(first, time(), UTC) + LOOKBACK
    return Interval(min(max(start, retained_from), hours.start), hours.end)


def _read_later(lake: Lake, settings: Settings, hours: Interval) -> DataFrame | None:
    """Return the rows of bronze.job_events of the hours after these, as far as rescales look; None without any."""
    end = hours.end + timedelta(hours=settings.ingest.late_allowance_h)
    are_any = has_files(lake, BRONZE_JOB_EVENTS, hours.end, end)
    return read_earlier_replies(lake, hours.end, end) if are_any else None


def _name_operators(polls: DataFrame, plans: DataFrame) -> DataFrame:
    """Return the names of vertices, with ``is_source`` and ``feeders``."""
    sources = job_graphs.find_sources(plans).hint("shuffle_hash")
    named = operator_names.name_operators(polls).join(sources, ["cluster", "job_id", "vertex_id"], "left")
    return named.withColumn("is_source", sample_placement.source_or_named())


def _find_stops(polls: DataFrame, replies: DataFrame) -> DataFrame:
    return restarts.find_stops(
        polls,
        job_replies.select_failures(replies),
        job_replies.select_checkpoints(replies),
        job_replies.select_state_moves(replies),
    )
