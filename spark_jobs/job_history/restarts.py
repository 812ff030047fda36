"""When jobs stopped and ran again, told from ``job``, ``exceptions`` and ``checkpoints`` replies.

Two polls with different RUNNING times have a stop between them.  Its time is, in this order: a failure that Flink
lists, the time at which it left RUNNING if a reply shows it, else the last moment at which it was seen at work (a reply
in state RUNNING or a completed checkpoint, whichever is later): then the downtime is an upper bound.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.flink.job_states import RUNNING
from spark_jobs.job_history.job_endings import drop_endings

# Job replies may be a few seconds old (Flink keeps them for its refresh interval): a stop may precede the last of them.
_STALE_REPLY_S = 10
# Flink's default `web.refresh-interval`: a reply of the former run that came after the new one ran was as old as this.
_REFRESH_S = 3
# How Flink words the loss of a TaskManager: by its heartbeat, its connections or the resource manager.
_LOST_TASK_MANAGER = (
    "no longer reachable|task ?manager.*(lost|closed|timed out|terminat|fail)|heartbeat of task ?manager"
)
_TRANSITION_KEY = ("cluster", "job", "running_at")
_TRANSITION = (
    *_TRANSITION_KEY,
    "job_id",
    "job_id_before",
    "ran_since",
    "last_seen",
    "detected_at",
    "vector_before",
    "vector_after",
)


def find_stops(polls: DataFrame, failures: DataFrame, checkpoints: DataFrame, state_moves: DataFrame) -> DataFrame:
    """Return one row per stop of a job; a job that came to its end did not stop.

    Columns: ``cluster, job, job_id, job_id_before, started_at``; ``running_at`` (null when the job failed again before
    it was seen running); ``ended_at`` (the same, or the next stop; null while it is down); ``is_open`` (not running
    yet); ``detected_at`` (the reply that showed it); ``kind, cause, cause_kind``; ``vector_before, vector_after``;
    ``checkpoint_at, state_size_bytes`` (of the last checkpoint completed before the stop); ``next_started_at``.
    """
    changes = drop_endings(
        _transitions(polls), polls, state_moves
    ).localCheckpoint()  # few, of many replies, and used twice
    stops = _stops(polls, failures)
    incidents = _incidents(changes, stops, checkpoints)
    by_job = Window.partitionBy("cluster", "job").orderBy("started_at")
    closed = incidents.withColumn("next_started_at", F.lead("started_at").over(by_job))
    return closed.unionByName(_open_stops(polls), allowMissingColumns=True)


def _transitions(polls: DataFrame) -> DataFrame:
    """Return consecutive runs of a job that differ in their RUNNING time, also across a resubmission under one name."""
    running = polls.where((F.col("state") == RUNNING) & F.col("running_at").isNotNull())
    runs = running.groupBy("cluster", "job", "job_id", "running_at").agg(
        F.min("observed_at").alias("first_seen"),
        F.max("observed_at").alias("last_seen"),
        F.max_by("vector", "observed_at").alias("vector"),
    )
    by_job = Window.partitionBy("cluster", "job").orderBy("running_at", "job_id")
    before = F.lag(F.struct("job_id", "running_at", "last_seen", "vector")).over(by_job)
    paired = runs.withColumn("before", before).where("before.last_seen < first_seen")
    cached = F.col("running_at") - F.make_dt_interval(secs=F.lit(float(_REFRESH_S)))
    last_observed = F.when(F.col("before.last_seen") < F.col("running_at"), F.col("before.last_seen")).otherwise(cached)
    return paired.select(
        "cluster",
        "job",
        "running_at",
        "job_id",
        F.col("before.job_id").alias("job_id_before"),
        F.col("before.running_at").alias("ran_since"),
        F.greatest("before.running_at", last_observed).alias("last_seen"),
        F.col("first_seen").alias("detected_at"),
        F.col("before.vector").alias("vector_before"),
        F.col("vector").alias("vector_after"),
    ).select(*_TRANSITION)


def _stops(polls: DataFrame, failures: DataFrame) -> DataFrame:
    """Return the times at which a job is said to have stopped, with the cause where Flink gives one."""
    shown = polls.select("cluster", "job", F.explode("stopped_at").alias("stopped_at")).distinct()
    names = F.broadcast(polls.select("cluster", "job", "job_id").distinct())
    failed = failures.join(names, ["cluster", "job_id"]).select(
        "cluster", "job", F.col("failed_at").alias("stopped_at"), "cause"
    )
    both = failed.unionByName(shown, allowMissingColumns=True)
    return both.groupBy("cluster", "job", "stopped_at").agg(F.min("cause").alias("cause"))


def _incidents(changes: DataFrame, stops: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """Split each transition into its stops: several when the job was at work between two of them.

    A checkpoint completed between two failures shows that the job ran there; so does a stop that Flink dates well after
    the failure before. Failures in one downtime (of an attempt to restart) are one incident.
    """
    earliest = F.greatest("ran_since", F.col("last_seen") - F.make_dt_interval(secs=F.lit(float(_STALE_REPLY_S))))
    inside = (F.col("stopped_at") > earliest) & (F.col("stopped_at") <= F.col("running_at"))
    candidates = changes.join(stops, ["cluster", "job"]).where(inside).select(*_TRANSITION, "stopped_at", "cause")
    with_stop = changes.join(candidates.select(*_TRANSITION_KEY, "stopped_at", "cause"), list(_TRANSITION_KEY), "left")
    dated = _with_checkpoint(with_stop, checkpoints)
    in_order = Window.partitionBy(*_TRANSITION_KEY).orderBy("stopped_at")
    before = F.lag("stopped_at").over(in_order)
    worked = F.col("checkpoint.completed_at") > before
    has_stopped_again = F.col("cause").isNull() & (
        F.unix_seconds("stopped_at") - F.unix_seconds(before) > _STALE_REPLY_S
    )
    is_head = before.isNull() | F.coalesce(worked, F.lit(False)) | has_stopped_again
    heads = dated.withColumn("is_head", is_head).where("is_head")
    following = F.lead("stopped_at").over(in_order)
    last_at_work = F.least("running_at", F.greatest("last_seen", "checkpoint.completed_at"))
    events = heads.withColumn("following", following).withColumn("started_at", F.coalesce("stopped_at", last_at_work))
    return events.select(*_event_columns())


def _with_checkpoint(stops: DataFrame, checkpoints: DataFrame) -> DataFrame:
    """Add the last checkpoint that was completed before each stop (before it ran again, where no stop is dated)."""
    timestamp = F.coalesce("stopped_at", "running_at")
    at_stops = stops.select(
        "cluster", F.col("job_id_before").alias("job_id"), timestamp.alias("at"), F.struct("*").alias("stop")
    )
    at_ends = checkpoints.select(
        "cluster",
        "job_id",
        F.col("completed_at").alias("at"),
        F.struct("completed_at", "triggered_at", "state_size_bytes").alias("checkpoint"),
    )
    # As of, by a walk along time: joining every stop with every checkpoint before it would grow with their product.
    timeline = at_stops.unionByName(at_ends, allowMissingColumns=True)
    walk = Window.partitionBy("cluster", "job_id").orderBy("at", F.col("checkpoint").isNull())
    so_far = walk.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = timeline.withColumn("checkpoint", F.last("checkpoint", ignorenulls=True).over(so_far))
    return last.where("stop IS NOT NULL").select("stop.*", "checkpoint")


def _event_columns() -> list[Column | str]:
    is_last = F.col("following").isNull()
    changed = is_last & (_levels("vector_before") != _levels("vector_after"))
    kind = F.when(F.col("cause").isNull() & changed, "rescale").otherwise("restart")
    return [
        "cluster",
        "job",
        "job_id",
        "job_id_before",
        "started_at",
        F.when(is_last, F.col("running_at")).alias("running_at"),
        F.coalesce("following", "running_at").alias("ended_at"),
        F.lit(False).alias("is_open"),
        "detected_at",
        kind.alias("kind"),
        "cause",
        _cause_kind(kind).alias("cause_kind"),
        "vector_before",
        F.when(is_last, F.col("vector_after")).otherwise(F.col("vector_before")).alias("vector_after"),
        F.col("checkpoint.triggered_at").alias("checkpoint_at"),
        F.col("checkpoint.state_size_bytes").alias("state_size_bytes"),
    ]


def _cause_kind(kind: Column) -> Column:
    """Return the kind of event, finer than ``kind``: which part of a recovery takes how long depends on it."""
    is_other_job = F.coalesce(F.col("job_id") != F.col("job_id_before"), F.lit(False))
    return (
        F.when(is_other_job, "upgrade")
        .when(kind == "rescale", "rescale")
        .when(F.lower("cause").rlike(_LOST_TASK_MANAGER), "taskmanager_lost")
        .otherwise("job_failure")
    )


def _levels(vector: str) -> Column:
    """Return the parallelism by vertex: another name is no rescale."""
    return F.transform(vector, lambda pair: F.struct(pair["vertex_id"], pair["parallelism"]))


def _open_stops(polls: DataFrame) -> DataFrame:
    """Return jobs whose last reply does not show them running: stopped since they were last seen so."""
    last = polls.groupBy("cluster", "job", "job_id").agg(
        F.max_by("state", "observed_at").alias("state"),
        F.max(F.when(F.col("state") == RUNNING, F.col("observed_at"))).alias("started_at"),
        F.max("observed_at").alias("detected_at"),
    )
    down = last.where((F.col("state") != RUNNING) & F.col("started_at").isNotNull())
    return down.select("cluster", "job", "job_id", "started_at", F.lit(True).alias("is_open"), "detected_at")
