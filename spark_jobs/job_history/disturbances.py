"""Windows in which a job stopped, started or restored tasks, by the rules of ``models/observing/disturbances.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.finished_operators import RESTORING
from include.flink.job_states import RUNNING
from include.settings import Settings
from models.observing.clocks import find_ahead_ms
from models.observing.disturbances import find_disturbed_spans, find_restores, is_fresh_start
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.job_history.arrow_rows import times_in_ms, to_table
from spark_jobs.job_history.samples import window_length_s
from spark_jobs.one_job import local_frame

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_EVENTS = "cluster STRING, job_id STRING, started_s BIGINT, ended_s BIGINT"
_WINDOWS = "cluster STRING, job_id STRING, window_start TIMESTAMP"
_Batches = Iterable[pa.RecordBatch]
_Mapped = Callable[[_Batches], Iterator[pa.RecordBatch]]


def find_unsettled_windows(
    stops: DataFrame, starts: DataFrame, settings: Settings, horizon: datetime, since: datetime = EARLIEST
) -> DataFrame:
    """Return ``cluster, job_id, window_start`` of the windows in which a job stopped or started, or restored tasks.

    Args:
        stops: from :func:`spark_jobs.job_history.restarts.find_stops`, as a local frame.
        starts: from :func:`find_starts_and_restores`, as a local frame.
        settings: of clusters and ingestion.
        horizon: end of the data, until which a job that does not run yet is disturbed.
        since: windows before it are not wanted.
    """
    rows = [*_events_of_stops(stops, settings).collect(), *_with_window(starts, settings).collect()]
    events = pa.Table.from_pylist([row.asDict() for row in rows], schema=arrow_schema(f"{_EVENTS}, window_s INT"))
    spread = _windows_of(since, horizon, settings.ingest.settle_s)
    windows = pa.Table.from_batches(spread(events.to_batches()), arrow_schema(_WINDOWS))
    distinct = windows.group_by(windows.column_names).aggregate([])
    like = stops.sparkSession.createDataFrame([], _WINDOWS)
    return local_frame(like, distinct)


def _events_of_stops(stops: DataFrame, settings: Settings) -> DataFrame:
    times = [F.unix_seconds(f"{name}_at").alias(f"{name}_s") for name in ("started", "ended")]
    return _with_window(stops.select("cluster", "job_id", *times), settings)


def _with_window(events: DataFrame, settings: Settings) -> DataFrame:
    return events.withColumn("window_s", window_length_s(settings.clusters))


def find_starts_and_restores(polls: DataFrame) -> DataFrame:
    """Return as events the first start of each job seen that had not run for long, and when its tasks were restored."""
    status = F.transform("vertices", lambda vertex: vertex["status"])
    is_restoring = (F.col("state") == RUNNING) & F.arrays_overlap(status, F.array(*map(F.lit, sorted(RESTORING))))
    shown = polls.withColumn("is_restoring", F.coalesce(is_restoring, F.lit(False)))
    replies = F.collect_list(F.struct(F.unix_millis("observed_at").alias("at"), "is_restoring"))
    by_id = shown.groupBy("cluster", "job_id").agg(
        F.min("running_at").alias("running_at"),
        F.min(F.when(F.col("running_at").isNotNull(), F.col("observed_at"))).alias("polled_at"),
        F.median("ahead_ms").alias("ahead_ms"),
        F.when(F.max("is_restoring"), F.sort_array(replies)).alias("replies"),
    )
    return times_in_ms(by_id).mapInArrow(_events_of(arrow_schema(_EVENTS)), _EVENTS)


def _events_of(schema: pa.Schema) -> _Mapped:
    """Return what gives a job's events from what its replies show."""

    def find(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = [
                {**row, "started_s": began_ms // 1000, "ended_s": ended_ms // 1000}
                for row in batch.to_pylist()
                for began_ms, ended_ms in _spans_of(row)
            ]
            yield from to_table(events, schema).to_batches()

    return find


def _spans_of(row: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    polled_ms, ahead_ms = row["polled_at"], row["ahead_ms"]
    if polled_ms is not None:
        running_ms = row["running_at"] - find_ahead_ms([] if ahead_ms is None else [ahead_ms])
        if is_fresh_start(polled_ms, running_ms):
            yield running_ms, running_ms
    yield from find_restores((one["at"], one["is_restoring"]) for one in row["replies"] or ())


def _windows_of(since: datetime, horizon: datetime, settle_s: int) -> _Mapped:
    """Return what gives the windows that events disturb; whatever an event says of its time, none outside."""
    since_s, horizon_s, schema = int(since.timestamp()), int(horizon.timestamp()), arrow_schema(_WINDOWS)

    def spread(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            started_s, window_s = (batch[name].to_numpy().astype(np.int64) for name in ("started_s", "window_s"))
            ended_s = batch["ended_s"].to_numpy(zero_copy_only=False).astype(np.float64)
            first_s, last_s = find_disturbed_spans(started_s, ended_s, window_s, settle_s=settle_s, until_s=horizon_s)
            first_s, last_s = np.maximum(first_s, since_s - since_s % window_s), np.minimum(last_s, horizon_s)
            counts = np.where((started_s <= horizon_s) & (last_s >= since_s), (last_s - first_s) // window_s + 1, 0)
            rows = np.repeat(np.arange(len(counts)), counts)
            number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
            starts_us = (first_s[rows] + number * window_s[rows]) * 1_000_000
            ids = [batch[name].take(pa.array(rows)) for name in ("cluster", "job_id")]
            starts = pa.array(starts_us, pa.int64()).cast(schema.field("window_start").type)
            yield pa.RecordBatch.from_arrays([*ids, starts], schema=schema)

    return spread
