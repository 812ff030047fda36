"""What the replies about a job say, typed: its state and parallelism, its operators, checkpoints and failures."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from spark_jobs.job_history.operator_names import name_jobs, operators_of
from spark_jobs.raw_parsing.envelopes import timestamp_of_ms
from spark_jobs.raw_parsing.event_bodies import are_unusable, vertex_ids
from spark_jobs.raw_parsing.reply_schema import REPLY, RUNNING, STOPPED

_KINDS = (Kind.JOB, Kind.PLAN, Kind.CHECKPOINTS, Kind.EXCEPTIONS)


def read_replies(events: DataFrame) -> DataFrame:
    """Return replies about a job, typed: ``cluster, job_id, observed_at, kind, reply``.

    Args:
        events: rows of bronze.job_events; in ``event`` what is read of a body already, null where it has to be read.
    """
    reply = F.coalesce("event", F.from_json("body", REPLY)).alias("reply")
    read = events.where(F.col("kind").isin(*_KINDS)).select("cluster", "job_id", "observed_at", "kind", reply)
    # Bronze may hold replies that were taken in before there was a rule for them.
    return read.where(~F.coalesce(are_unusable(vertex_ids("reply")), F.lit(False)))


def select_polls(replies: DataFrame) -> DataFrame:
    """Return one row per ``job`` reply: its state, when it last came to run, when it stopped, and its vertices.

    ``operators`` are its names as ``ARRAY<STRUCT<vertex_id, operator>>``, ``vector`` is its parallelism as
    ``ARRAY<STRUCT<vertex_id, parallelism, operator>>``; both are sorted: Flink's order varies.
    """
    stopped = F.array(*[F.col(f"reply.timestamps.{state}") for state in STOPPED])
    polls = _of(replies, Kind.JOB).select(
        "cluster",
        F.col("reply.name").alias("job"),
        "job_id",
        "observed_at",
        "reply.state",
        timestamp_of_ms(F.col("reply.timestamps.RUNNING")).alias("running_at"),
        F.transform(F.filter(stopped, lambda ms: ms > 0), timestamp_of_ms).alias("stopped_at"),
        "reply.vertices",
        operators_of(F.col("reply.vertices")).alias("operators"),
    )
    return name_jobs(polls).withColumn("vector", _vector())


def find_parallelism_periods(polls: DataFrame, horizon: datetime) -> DataFrame:
    """Return periods of constant parallelism per vertex: ``vertex_id, parallelism, valid_from, valid_to``.

    The last period of a job ends at ``horizon``.

    Only replies in state RUNNING count: while it waits for slots, Flink shows a parallelism that is not real.
    """
    running = polls.where(F.col("state") == RUNNING).select("cluster", "job_id", "observed_at", "vector")
    by_job = Window.partitionBy("cluster", "job_id").orderBy("observed_at")
    # Most replies repeat the one before: they go first, so that few rows are exploded.
    changed = running.withColumn("before", F.lag("vector").over(by_job)).where("before IS NULL OR before <> vector")
    periods = changed.withColumn("valid_to", F.coalesce(F.lead("observed_at").over(by_job), F.lit(horizon)))
    return periods.select(
        "cluster", "job_id", F.col("observed_at").alias("valid_from"), "valid_to", F.explode("vector").alias("vertex")
    ).select("cluster", "job_id", "vertex.vertex_id", "vertex.parallelism", "valid_from", "valid_to")


def select_plans(replies: DataFrame) -> DataFrame:
    """Return one row per ``plan`` reply: its nodes with their inputs."""
    return _of(replies, Kind.PLAN).select("cluster", "job_id", "observed_at", F.col("reply.plan.nodes").alias("nodes"))


def select_checkpoints(replies: DataFrame) -> DataFrame:
    """Return completed checkpoints, each once: ``triggered_at, completed_at, state_size_bytes``."""
    latest = F.when(F.col("reply.latest.completed").isNotNull(), F.array("reply.latest.completed"))
    listed = F.concat(F.coalesce(latest, F.array()), F.coalesce("reply.history", F.array()))
    found = _of(replies, Kind.CHECKPOINTS).select("cluster", "job_id", F.explode(listed).alias("one"))
    return (
        found.where("one.status = 'COMPLETED'")
        .select(
            "cluster",
            "job_id",
            timestamp_of_ms(F.col("one.trigger_timestamp")).alias("triggered_at"),
            timestamp_of_ms(F.col("one.latest_ack_timestamp")).alias("completed_at"),
            F.col("one.state_size").cast("DOUBLE").alias("state_size_bytes"),
        )
        .distinct()
    )


def select_failures(replies: DataFrame) -> DataFrame:
    """Return the failures that ``exceptions`` replies list, each once: ``failed_at`` and ``cause`` (its first line)."""
    listed = F.explode("reply.exceptionHistory.entries").alias("entry")
    entries = _of(replies, Kind.EXCEPTIONS).select("cluster", "job_id", listed)
    first_line = F.substring_index("entry.stacktrace", "\n", 1)
    causes = entries.where("entry.timestamp > 0").select(
        "cluster",
        "job_id",
        timestamp_of_ms(F.col("entry.timestamp")).alias("failed_at"),
        F.substring(F.coalesce(first_line, "entry.exceptionName"), 1, 500).alias("cause"),
    )
    return causes.groupBy("cluster", "job_id", "failed_at").agg(F.min("cause").alias("cause"))


def _of(replies: DataFrame, kind: Kind) -> DataFrame:
    return replies.where((F.col("kind") == kind) & F.col("reply").isNotNull())


def _vector() -> Column:
    """Return the parallelism of a poll's vertices, in the order of its operators."""

    def with_parallelism(operator: Column) -> Column:
        vertex = F.get(F.filter("vertices", lambda v: v["id"] == operator["vertex_id"]), F.lit(0))
        return F.struct(
            operator["vertex_id"].alias("vertex_id"),
            vertex["parallelism"].alias("parallelism"),
            operator["operator"].alias("operator"),
        )

    return F.filter(F.transform("operators", with_parallelism), lambda pair: pair["parallelism"] >= 1)
