"""Windows in which a job stopped, started or restored tasks, by the rules of ``models/observing/disturbances.py``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.finished_operators import RESTORING
from include.flink.job_states import RUNNING
from include.utc import Interval
from models.observing.clocks import find_ahead_ms
from models.observing.disturbances import find_disturbed_spans, find_restores, is_fresh_start
from spark_jobs.job_history.arrow_rows import times_in_ms

_ID = ("cluster", "job_id")
_TEXT, _NUMBER = pa.string(), pa.int64()
_EVENT = pa.schema([(name, _TEXT) for name in _ID] + [(name, _NUMBER) for name in ("started_s", "ended_s")])


def find_unsettled_windows(
    stops: Iterable[Mapping[str, Any]], starts: pa.Table, windows_s: Mapping[str, int], settle_s: int, within: Interval
) -> pa.Table:
    """Return ``cluster, job_id, window_start`` of the windows in which a job stopped or started, or restored tasks.

    Windows before ``within`` are not wanted; until its end a job that does not run yet is disturbed.
    """
    ids = [(row["cluster"], row["job_id"], *_to_s(row)) for row in stops]
    ids += [(row["cluster"], row["job_id"], *span) for row in starts.to_pylist() for span in _spans_of(row)]
    events = pa.Table.from_pylist([dict(zip(_EVENT.names, one, strict=True)) for one in ids], _EVENT)
    return _spread(events, windows_s, settle_s, within).group_by([*_ID, "window_start"]).aggregate([])


def _to_s(stop: Mapping[str, Any]) -> list[int | None]:
    times = (stop["started_at"], stop["ended_at"])
    return [None if at is None else math.floor(at.timestamp()) for at in times]


def sum_up_starts(polls: DataFrame) -> DataFrame:
    """Return of each job id what tells of its first start, and of those whose tasks were restored all that tells when.

    All times are epoch milliseconds.
    """
    status = F.transform("vertices", lambda vertex: vertex["status"])
    is_restoring = (F.col("state") == RUNNING) & F.arrays_overlap(status, F.array(*map(F.lit, sorted(RESTORING))))
    shown = polls.withColumn("is_restoring", F.coalesce(is_restoring, F.lit(False)))
    replies = F.collect_list(F.struct(F.unix_millis("observed_at").alias("at"), "is_restoring"))
    by_id = shown.groupBy(*_ID).agg(
        F.min("running_at").alias("running_at"),
        F.min(F.when(F.col("running_at").isNotNull(), F.col("observed_at"))).alias("polled_at"),
        F.median("ahead_ms").alias("ahead_ms"),
        F.when(F.max("is_restoring"), F.sort_array(replies)).alias("replies"),
    )
    return times_in_ms(by_id)


def _spans_of(row: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    polled_ms, ahead_ms = row["polled_at"], row["ahead_ms"]
    if polled_ms is not None:
        running_ms = row["running_at"] - find_ahead_ms([] if ahead_ms is None else [ahead_ms])
        if is_fresh_start(polled_ms, running_ms):
            yield running_ms // 1000, running_ms // 1000
    restored = find_restores((one["at"], one["is_restoring"]) for one in row["replies"] or ())
    yield from ((began_ms // 1000, ended_ms // 1000) for began_ms, ended_ms in restored)


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
