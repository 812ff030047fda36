"""Loads of the last day and a half, for jobs of a policy that learns what a load does and does not know them yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.policy_catalogue import Decides, names_where
from include.settings import Planner
from models.programme.load_paths import STEP_S
from spark_jobs.newest_rows import JOB
from spark_jobs.plan_inputs.windows import has_policy, windows_between

PAST = timedelta(hours=36)


def any_replans(options: Planner) -> bool:
    """Whether some job's policy decides anew at every evaluation."""
    return bool(names_where(options.policies_in_use, decides=Decides.REPLANS))


def past_loads(observations: DataFrame, remembered: DataFrame, options: Planner, as_of: datetime) -> DataFrame:
    """Return ``cluster, job, past_loads``: an array of structs with the number of each step and its load per s.

    A window in which one source shows neither what arrives nor what it takes in tells nothing.

    Args:
        observations: silver.observations.
        remembered: of :func:`spark_jobs.plan_inputs.policy_memory.newest_memories`.
        options: the planner's settings.
        as_of: the moment of planning.
    """
    names = names_where(options.policies_in_use, decides=Decides.REPLANS)
    known = remembered.where(F.col("memory_policy").isin(*names)).select(*JOB)
    windows = windows_between(observations.where("is_source"), as_of - PAST, as_of)
    new = windows.where(has_policy(options, names)).join(F.broadcast(known), JOB, "left_anti")
    load = F.coalesce("target_data_rate_per_s", "processing_rate_per_s")
    step = F.floor((F.col("window_start_s") + F.col("window_s") - 1) / STEP_S).cast("bigint")
    each = new.groupBy(*JOB, "window_start_s", step.alias("at")).agg(
        F.sum(load).alias("load_per_s"), F.max(load.isNull().cast("int")).alias("is_unknown")
    )
    steps = each.where("is_unknown = 0").groupBy(*JOB, "at").agg(F.avg("load_per_s").alias("load_per_s"))
    rows = F.sort_array(F.collect_list(F.struct("at", "load_per_s")))
    return steps.groupBy(*JOB).agg(rows.alias("past_loads"))
