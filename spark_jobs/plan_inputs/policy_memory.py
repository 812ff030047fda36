"""What policies remember of their jobs: ``gold.policy_memory``.

Plans hand a memory on from one to the next; the nightly learning and a profiling phase leave one for the next plan.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.stage_names import PROFILING, Stage
from include.tables import POLICY_MEMORY
from models.hosting.memories import recall as recall_text
from models.policies.protocol import Policy
from spark_jobs.newest_rows import JOB, within_lookback
from spark_jobs.timestamps import as_of_slice, timestamp_column

log = logging.getLogger(__name__)


def newest_memories(memories: DataFrame, as_of: datetime, also: Collection[str] = ()) -> DataFrame:
    """Return ``cluster, job, memory, memory_policy`` as last left before ``as_of``.

    A stage that runs again for the same moment thereby starts from the same memory.  Of one moment the plan's counts,
    since it was made with the others.

    Args:
        memories: gold.policy_memory.
        as_of: the moment.
        also: stages that come before the asking one, whose memories of the very moment count too.
    """
    # A profile is expensive and its rows are few: it is not forgotten for want of plans.
    known = within_lookback(as_of) | (F.col("stage") == F.lit(PROFILING))
    earlier = F.col("as_of") < timestamp_column(as_of)
    of_now = (F.col("as_of") == timestamp_column(as_of)) & F.col("stage").isin(list(map(str, also)))
    before = memories.where(known & (earlier | of_now))
    order = F.struct("as_of", F.col("stage") == F.lit(str(Stage.PLAN)), "stage")
    newest = F.max_by(F.struct("memory", "policy"), order).alias("newest")
    result = before.groupBy(*JOB).agg(newest)
    return result.select(*JOB, "newest.memory", F.col("newest.policy").alias("memory_policy"))


def memory_rows(rows: DataFrame, stage: str, as_of: datetime) -> DataFrame:
    """Return the rows of gold.policy_memory among the rows that a stage made."""
    made = {"stage": F.lit(str(stage)), "as_of": timestamp_column(as_of), "date": F.lit(as_of.date())}
    return rows.where("memory IS NOT NULL").withColumns(made).select(*POLICY_MEMORY.columns)


def own_memories(stage: str, as_of: datetime) -> str:
    """Return the slice of gold.policy_memory that a stage replaces."""
    return f"stage = '{stage}' AND {as_of_slice(as_of)}"


def recall(chosen: Policy[Any], name: str, memory: str | None, memory_policy: str | None) -> Any:
    """Return a policy's memory of a job; the first one where there is none, or only that of another policy."""
    remembered, problem = recall_text(chosen, name, memory, memory_policy)
    if problem:
        log.warning("%s", problem)
    return remembered
