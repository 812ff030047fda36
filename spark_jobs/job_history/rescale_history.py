"""What Flink itself keeps of rescales, from 2.3 on: why each began, when the job stopped for it and ran again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.domain.reply_limits import EARLIEST_MS
from include.flink.raw_format import Endpoint
from spark_jobs.raw_parsing.envelopes import timestamp_of_ms
from spark_jobs.raw_parsing.event_bodies import select_bodies

_SPAN = "STRUCT<state: STRING, enterTimestampInMillis: BIGINT, leaveTimestampInMillis: BIGINT>"
_RESCALE = f"""STRUCT<rescaleUuid: STRING, endTimestampInMillis: BIGINT, terminalState: STRING, triggerCause: STRING,
    schedulerStates: ARRAY<{_SPAN}>>"""
_COMPLETED, _STOPPED = "COMPLETED", "Restarting"
# From the end of a rescale to the time of RUNNING in the job's own reply.
_APART = timedelta(seconds=2)
_UNTOLD = {"stopped_at": None, "flink_trigger": None}
_SKEW_MS = 86_400_000  # of clocks; which is ahead is known where stops are dated


def select_told_rescales(events: DataFrame) -> DataFrame:
    """Return rescales that Flink has completed, each once: ``cluster, job_id, stopped_at, ran_at, flink_trigger``."""
    body = F.from_json("body", _RESCALE).alias("told")
    observed_ms = F.unix_millis("observed_at").alias("observed_ms")
    read = select_bodies(events, Endpoint.RESCALE).select("cluster", "job_id", observed_ms, body)
    stops = F.filter("told.schedulerStates", lambda span: span["state"] == _STOPPED)
    stopped_ms = F.array_min(F.transform(stops, lambda span: span["enterTimestampInMillis"]))
    completed = read.where(F.col("told.terminalState") == _COMPLETED)
    return completed.select(
        "cluster",
        "job_id",
        _past_time(stopped_ms).alias("stopped_at"),
        _past_time(F.col("told.endTimestampInMillis")).alias("ran_at"),
        F.col("told.triggerCause").alias("flink_trigger"),
    ).distinct()


def _past_time(at_ms: Column) -> Column:
    """Return a time; null for one that cannot be: a day after the reply, or before there was any Flink."""
    return F.when(at_ms.between(F.lit(EARLIEST_MS), F.col("observed_ms") + _SKEW_MS), timestamp_of_ms(at_ms))


def date_stops(stops: pa.Table, told: pa.Table) -> list[dict[str, Any]]:
    """Return stops with ``flink_trigger``, and with Flink's own time of those that had none.

    Otherwise the time of a stop that is no failure is the last at which the job was seen at work, and its downtime an
    upper bound.
    """
    by_id: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for one in told.filter(pc.is_valid(told["ran_at"])).to_pylist():
        by_id[one["cluster"], one["job_id"]].append(one)
    result = []
    for stop in stops.to_pylist():
        ahead, running_at = timedelta(milliseconds=stop["ahead_ms"] or 0), stop["running_at"]
        near = by_id[stop["cluster"], stop["job_id"]] if running_at else []
        for one in [one for one in near if abs(one["ran_at"] - ahead - running_at) <= _APART] or [_UNTOLD]:
            stopped_at = one["stopped_at"] and one["stopped_at"] - ahead
            is_dated = stop["cause"] is None and stopped_at is not None and stopped_at < running_at
            started_at = stopped_at if is_dated else stop["started_at"]
            result.append({**stop, "started_at": started_at, "flink_trigger": one["flink_trigger"]})
    return result
