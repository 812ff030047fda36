"""What an evaluation starts from: every job with its graph, its newest plan and the memory of the last evaluation."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include import tables
from include.control.watching import WATCHED
from include.settings import Settings
from include.stages import Stage
from spark_jobs.job_inputs.newest_rows import JOB, newest_graphs, newest_plans, within_lookback
from spark_jobs.job_inputs.windows import has_policy
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_column
from spark_jobs.watch.seen import what_is_seen

# An older memory is not taken up again: too much happened unseen, and nothing that it holds is in force any more.
REMEMBERED = timedelta(hours=6)


def job_views(lake: Lake, settings: Settings, as_of: datetime) -> DataFrame:
    """Return one row per watched job; columns as :class:`spark_jobs.watch.job.JobView` reads them."""
    watched = has_policy(settings.planner, {WATCHED})
    graphs = newest_graphs(lake.read(tables.JOB_GRAPHS), as_of).where(watched).localCheckpoint()
    seen = what_is_seen(lake.spark, settings, graphs, as_of)
    plans = newest_steps(newest_plans(lake.read(tables.PLANS), as_of))
    of_plan = plan_memories(lake.read(tables.POLICY_MEMORY), as_of)
    of_look = look_memories(lake.read(tables.LOOKS), as_of)
    return (
        graphs.select(*JOB, "job_id", "operators")
        .join(seen, JOB, "left")
        .join(plans, JOB, "left")
        .join(of_plan, [*JOB, "plan_as_of_s"], "left")
        .join(of_look, JOB, "left")
    )


def newest_steps(plans: DataFrame) -> DataFrame:
    """Return each job's newest plan: ``plan_as_of_s`` and ``steps``, JSON of those that change something."""
    step = F.struct(
        "step_id",
        F.unix_timestamp("apply_at").alias("apply_at_s"),
        "parallelism_to",
    )
    steps = F.collect_list(F.when(F.col("status") == "planned", step))
    return plans.groupBy(*JOB).agg(
        F.unix_timestamp(F.max("as_of")).alias("plan_as_of_s"), F.to_json(steps).alias("steps")
    )


def plan_memories(memories: DataFrame, as_of: datetime) -> DataFrame:
    """Return what plans left for the controller, by job and plan."""
    own = (F.col("stage") == str(Stage.PLAN)) & (F.col("policy") == WATCHED)
    made = memories.where(within_lookback(as_of) & own & (F.col("as_of") <= timestamp_column(as_of)))
    return made.select(*JOB, F.unix_timestamp("as_of").alias("plan_as_of_s"), F.col("memory").alias("plan_memory"))


def look_memories(looks: DataFrame, as_of: datetime) -> DataFrame:
    """Return what each job's last evaluation before ``as_of`` left: a rerun starts from the same memory."""
    since = as_of - REMEMBERED
    between = (F.col("as_of") >= timestamp_column(since)) & (F.col("as_of") < timestamp_column(as_of))
    made = looks.where(within_lookback(as_of) & between)
    newest = F.max_by(F.struct("memory", "plan_as_of"), "as_of").alias("newest")
    return (
        made.groupBy(*JOB)
        .agg(newest)
        .select(
            *JOB,
            F.col("newest.memory").alias("look_memory"),
            F.unix_timestamp("newest.plan_as_of").alias("look_plan_as_of_s"),
        )
    )
