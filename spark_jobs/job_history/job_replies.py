"""What the replies about a job say, typed: its state and parallelism, its operators, checkpoints and failures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.flink.job_states import ALIGNED, CHECKPOINT_COMPLETED, ENDED_STATES, RUNNING, STOPPED_STATES
from include.flink.raw_format import Endpoint
from include.settings import Cluster
from include.settings.job_names import write_for_java
from spark_jobs.job_history.operator_names import name_jobs, operators_of
from spark_jobs.raw_parsing.envelopes import timestamp_of_ms
from spark_jobs.raw_parsing.event_bodies import are_unusable, vertex_ids
from spark_jobs.raw_parsing.reply_schema import REPLY

NO_CLUSTERS: Mapping[str, Cluster] = {}
_KINDS = (Endpoint.JOB, Endpoint.PLAN, Endpoint.CHECKPOINTS, Endpoint.EXCEPTIONS)


def read_replies(events: DataFrame) -> DataFrame:
    """Return replies about a job, typed: ``cluster, job_id, observed_at, kind, reply``.

    Events have in ``event`` what is read of a body already, null where it has to be read.
    """
    reply = F.coalesce("event", F.from_json("body", REPLY)).alias("reply")
    return events.where(F.col("kind").isin(*_KINDS)).select("cluster", "job_id", "observed_at", "kind", reply)


def select_usable(replies: DataFrame) -> DataFrame:
    """Return replies without those whose vertices cannot be told apart: bronze may be older than the rule for them."""
    return replies.where(~F.coalesce(are_unusable(vertex_ids("reply")), F.lit(False)))


def select_polls(replies: DataFrame, clusters: Mapping[str, Cluster] = NO_CLUSTERS) -> DataFrame:
    """Return one row per ``job`` reply: its state, when it last came to run, when it stopped, and its vertices.

    ``operators`` are its vertices as ``ARRAY<STRUCT<vertex_id, parallelism, operator>>``, sorted: Flink's order varies;
    ``vector`` are those of which the parallelism is told.  ``ended_at`` is null of a job that has not ended;
    ``ahead_ms`` is the JobManager's clock less that of the poll, null where it is not told. Which names are one job the
    patterns of ``clusters`` say.
    """
    stopped = F.array(*[F.col(f"reply.timestamps.{state}") for state in STOPPED_STATES])
    polls = _of(replies, Endpoint.JOB).select(
        "cluster",
        name_by_pattern(F.col("reply.name"), clusters).alias("job"),
        "job_id",
        "observed_at",
        "reply.state",
        timestamp_of_ms(F.col("reply.timestamps.RUNNING")).alias("running_at"),
        F.when(F.col("reply.now") > 0, F.col("reply.now") - F.unix_millis("observed_at")).alias("ahead_ms"),
        F.transform(F.filter(stopped, lambda ms: ms > 0), timestamp_of_ms).alias("stopped_at"),
        F.col("reply.job-type").alias("job_type"),
        _ended_at().alias("ended_at"),
        "reply.vertices",
        operators_of(F.col("reply.vertices")).alias("operators"),
    )
    reported = F.filter("operators", lambda operator: operator["parallelism"] >= 1)
    return name_jobs(polls.withColumn("vector", reported))


def name_by_pattern(name: Column, clusters: Mapping[str, Cluster]) -> Column:
    """Return the job that a name means, as :meth:`include.settings.clusters.Cluster.name_job` does."""
    result = name
    for cluster, one in clusters.items():
        if one.job_names is not None:
            part = F.regexp_extract(name, *write_for_java(one.job_names))
            result = F.when((F.col("cluster") == cluster) & (part != ""), part).otherwise(result)
    return result


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
    """Return one row per plan with nodes: of ``plan`` replies, and the last of each hour that ``job`` replies carry.

    A job that initialises has a plan without nodes: no graph.
    """
    nodes, kind = F.col("reply.plan.nodes"), F.col("reply.plan.type").alias("plan_type")
    reported = replies.select("cluster", "job_id", "observed_at", "kind", nodes.alias("nodes"), kind).where(
        "size(nodes) > 0"
    )
    own = reported.where(F.col("kind") == Endpoint.PLAN).drop("kind")
    # No rule of ingestion has looked at the graphs of job replies.
    ids = F.col("nodes.id")
    are_fed = F.forall(
        "nodes", lambda one: F.size(F.array_except(F.coalesce(one["inputs"]["id"], F.array()), ids)) == 0
    )
    usable = reported.where((F.col("kind") == Endpoint.JOB) & ~are_unusable(ids) & are_fed)
    last = F.max_by(F.struct("observed_at", "nodes", "plan_type"), "observed_at").alias("last")
    hourly = usable.groupBy("cluster", "job_id", F.date_trunc("hour", "observed_at").alias("seen_hour")).agg(last)
    return own.unionByName(hourly.select("cluster", "job_id", "last.*"))


def select_checkpoints(replies: DataFrame) -> DataFrame:
    """Return completed checkpoints, each once: ``triggered_at, completed_at, is_aligned, state_size_bytes``."""
    latest = F.when(F.col("reply.latest.completed").isNotNull(), F.array("reply.latest.completed"))
    listed = F.concat(F.coalesce(latest, F.array()), F.coalesce("reply.history", F.array()))
    result = _of(replies, Endpoint.CHECKPOINTS).select("cluster", "job_id", F.explode(listed).alias("one"))
    return (
        result.where(F.col("one.status") == CHECKPOINT_COMPLETED)
        .select(
            "cluster",
            "job_id",
            timestamp_of_ms(F.col("one.trigger_timestamp")).alias("triggered_at"),
            timestamp_of_ms(F.col("one.latest_ack_timestamp")).alias("completed_at"),
            F.coalesce(F.col("one.checkpoint_type").isin(*ALIGNED), F.lit(False)).alias("is_aligned"),
            F.col("one.state_size").cast("DOUBLE").alias("state_size_bytes"),
        )
        .distinct()
    )


def select_aligned(polls: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """Return ``cluster, job_id, ahead_ms, completed_at, triggered_at`` of aligned checkpoints."""
    ahead = polls.groupBy("cluster", "job_id").agg(F.median("ahead_ms").alias("ahead_ms")).hint("shuffle_hash")
    times = {name: F.unix_millis(name).alias(name) for name in ("completed_at", "triggered_at")}
    aligned = checkpoints.where("is_aligned AND completed_at IS NOT NULL AND triggered_at IS NOT NULL")
    return aligned.join(ahead, ["cluster", "job_id"]).select("cluster", "job_id", "ahead_ms", *times.values())


def select_state_moves(replies: DataFrame) -> DataFrame:
    """Return one row per job whose checkpoints a reply tells of.

    ``is_restored``: whether it began with the state of another run; ``savepoint_at``: when its last savepoint was
    completed, null without one.
    """
    reported = _of(replies, Endpoint.CHECKPOINTS).where("reply.latest IS NOT NULL")
    completed_ms = F.col("reply.latest.savepoint.latest_ack_timestamp")
    return reported.groupBy("cluster", "job_id").agg(
        F.coalesce(F.max(F.col("reply.latest.restored.restore_timestamp") > 0), F.lit(False)).alias("is_restored"),
        timestamp_of_ms(F.max(F.when(completed_ms > 0, completed_ms))).alias("savepoint_at"),
    )


def select_failures(replies: DataFrame) -> DataFrame:
    """Return the failures that ``exceptions`` replies list, each once: ``failed_at`` and ``cause`` (its first line)."""
    listed = F.explode("reply.exceptionHistory.entries").alias("entry")
    entries = _of(replies, Endpoint.EXCEPTIONS).select("cluster", "job_id", listed)
    first_line = F.substring_index("entry.stacktrace", "\n", 1)
    causes = entries.where("entry.timestamp > 0").select(
        "cluster",
        "job_id",
        timestamp_of_ms(F.col("entry.timestamp")).alias("failed_at"),
        F.substring(F.coalesce(first_line, "entry.exceptionName"), 1, 500).alias("cause"),
    )
    return causes.groupBy("cluster", "job_id", "failed_at").agg(F.min("cause").alias("cause"))


def _ended_at() -> Column:
    """Return when a job of a ``job`` reply ended, as far as Flink tells; null of one that has not."""
    state, ended_at = F.col("reply.state"), F.lit(None).cast("TIMESTAMP")
    for one in ENDED_STATES:
        reported_ms = F.col(f"reply.timestamps.{one}")
        dated = F.when(reported_ms > 0, timestamp_of_ms(reported_ms)).otherwise(F.col("observed_at"))
        ended_at = F.when(state == one, dated).otherwise(ended_at)
    return ended_at


def _of(replies: DataFrame, kind: Endpoint) -> DataFrame:
    return replies.where((F.col("kind") == kind) & F.col("reply").isNotNull())
