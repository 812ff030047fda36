"""What Flink itself keeps of rescales, from 2.3 on: why each began, when the job stopped for it and ran again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.domain.reply_limits import EARLIEST_MS
from include.flink.raw_format import Kind
from spark_jobs.raw_parsing.envelopes import timestamp_of_ms
from spark_jobs.raw_parsing.event_bodies import select_bodies

_SPAN = "STRUCT<state: STRING, enterTimestampInMillis: BIGINT, leaveTimestampInMillis: BIGINT>"
_RESCALE = f"""STRUCT<rescaleUuid: STRING, endTimestampInMillis: BIGINT, terminalState: STRING, triggerCause: STRING,
    schedulerStates: ARRAY<{_SPAN}>>"""
_COMPLETED, _STOPPED = "COMPLETED", "Restarting"
# From the end of a rescale to the time of RUNNING in the job's own reply.
_APART_S = 2.0
_SKEW_MS = 86_400_000  # of clocks; which is ahead is known where stops are dated
_REPORTED = ("stopped_at", "ran_at", "flink_trigger")


def select_told_rescales(events: DataFrame) -> DataFrame:
    """Return rescales that Flink has completed, each once: ``cluster, job_id, stopped_at, ran_at, flink_trigger``.

    Args:
        events: rows of bronze.job_events.
    """
    body = F.from_json("body", _RESCALE).alias("told")
    observed_ms = F.unix_millis("observed_at").alias("observed_ms")
    read = select_bodies(events, Kind.RESCALE).select("cluster", "job_id", observed_ms, body)
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


def date_stops(stops: DataFrame, told: DataFrame) -> DataFrame:
    """Return stops with ``flink_trigger``, and with Flink's own time of those that had none.

    Otherwise the time of a stop that is no failure is the last at which the job was seen at work, and its downtime an
    upper bound.

    Args:
        stops: from :func:`spark_jobs.job_history.restarts.find_stops`.
        told: from :func:`select_told_rescales`.
    """
    ahead_ms = F.coalesce("ahead_ms", F.lit(0))
    apart_s = F.abs(F.unix_micros("ran_at") - 1000 * ahead_ms - F.unix_micros("running_at")) / F.lit(1e6)
    stopped_at = timestamp_of_ms(F.unix_millis("stopped_at") - ahead_ms)
    keyed = told.select(F.col("cluster").alias("told_cluster"), F.col("job_id").alias("told_job_id"), *_REPORTED)
    is_same = (F.col("cluster") == F.col("told_cluster")) & (F.col("job_id") == F.col("told_job_id"))
    joined = stops.join(keyed.hint("shuffle_hash"), is_same & (apart_s <= _APART_S), "left")
    is_dated = F.col("cause").isNull() & (stopped_at < F.col("running_at"))
    started_at = F.when(is_dated, stopped_at).otherwise(F.col("started_at"))
    return joined.withColumn("started_at", started_at).select(*stops.columns, "flink_trigger")
