"""Windows in which a job stopped, started or restored tasks, by the rules of ``models/observing/disturbances.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.finished_operators import RESTORING
from include.flink.job_states import RUNNING
from include.utc import Interval
from models.observing.clocks import find_ahead_ms
from models.observing.disturbances import find_disturbed_spans, find_restores, is_fresh_start
from spark_jobs.arrow_schema import arrow_schema
from spark_jobs.job_history.arrow_rows import times_in_ms, to_table

_ID = ("cluster", "job_id")
_EVENTS = "cluster STRING, job_id STRING, started_s BIGINT, ended_s BIGINT"
_Batches = Iterable[pa.RecordBatch]
_Mapped = Callable[[_Batches], Iterator[pa.RecordBatch]]


def find_unsettled_windows(
    stops: pa.Table, starts: pa.Table, windows_s: Mapping[str, int], settle_s: int, within: Interval
) -> pa.Table:
    """Return ``cluster, job_id, window_start`` of the windows in which a job stopped or started, or restored tasks.

    Args:
        stops: from :func:`spark_jobs.job_history.restarts.find_stops`.
        starts: from :func:`find_starts_and_restores`.
        windows_s: length of a window of each of their clusters.
        settle_s: of ``ingest.settle_s``.
        within: windows before it are not wanted; until its end a job that does not run yet is disturbed.
    """
    times = {f"{name}_s": _floor_s(stops[f"{name}_at"]) for name in ("started", "ended")}
    of_stops = pa.table({name: stops[name] for name in _ID} | times)
    events = pa.concat_tables([of_stops, starts.select(of_stops.column_names).cast(of_stops.schema)])
    return _spread(events, windows_s, settle_s, within).group_by([*_ID, "window_start"]).aggregate([])


def _floor_s(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole epoch seconds."""
    return pc.floor_temporal(times, unit="second").cast(pa.timestamp("s", "UTC")).cast(pa.int64())


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


def _spread(events: pa.Table, windows_s: Mapping[str, int], settle_s: int, within: Interval) -> pa.Table:
    """Return the windows that events disturb; whatever an event says of its time, none outside."""
    since_s, horizon_s = (int(at.timestamp()) for at in (within.start, within.end))
    window_s = np.array([windows_s[cluster] for cluster in events["cluster"].to_pylist()], np.int64)
    started_s = np.asarray(events["started_s"], np.int64)
    ended_s = np.asarray(events["ended_s"].cast(pa.float64()))
    first_s, last_s = find_disturbed_spans(started_s, ended_s, window_s, settle_s=settle_s, until_s=horizon_s)
    first_s, last_s = np.maximum(first_s, since_s - since_s % window_s), np.minimum(last_s, horizon_s)
    counts = np.where((started_s <= horizon_s) & (last_s >= since_s), (last_s - first_s) // window_s + 1, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts_us = (first_s[rows] + number * window_s[rows]) * 1_000_000
    ids = events.select(_ID).take(pa.array(rows))
    return ids.append_column("window_start", pa.array(starts_us, pa.int64()).cast(pa.timestamp("us", "UTC")))
