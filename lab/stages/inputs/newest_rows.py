"""The newest graphs and memories of jobs as frames, and rows of gold.policy_memory that a stage made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import JOB_GRAPHS, POLICY_MEMORY
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake, rows_of
from spark_jobs.newest_rows import LOOKBACK
from spark_jobs.plan_inputs.newest_of_jobs import list_graphs, read_newest_memories
from spark_jobs.timestamps import timestamp_column


def read_graphs(lake: Lake, as_of: datetime) -> DataFrame:
    """Return ``cluster, job, operators`` (JSON) of each job's newest graph by ``as_of``."""
    rows = read_newest_rows(lake, JOB_GRAPHS, as_of - LOOKBACK, as_of, order=("date", "hour"))
    graphs = {job: {"operators": json.dumps(graph["operators"])} for job, graph in list_graphs(rows).items()}
    return _frame(lake, graphs, ("operators",))


def read_memories(lake: Lake, as_of: datetime) -> DataFrame:
    """Return ``cluster, job, memory, memory_policy`` as last left before ``as_of``."""
    memories = read_newest_memories(lake.few(POLICY_MEMORY), as_of)
    return _frame(lake, memories, ("memory", "memory_policy"))


def _frame(lake: Lake, of_jobs: Mapping[tuple[str, str], Mapping[str, Any]], names: tuple[str, ...]) -> DataFrame:
    rows = [{"cluster": job[0], "job": job[1], **row} for job, row in of_jobs.items()]
    return rows_of(lake.spark, dict.fromkeys(("cluster", "job", *names), "STRING"), rows)


def memory_rows(rows: DataFrame, stage: str, as_of: datetime) -> DataFrame:
    """Return the rows of gold.policy_memory among the rows that a stage made."""
    made = {"stage": F.lit(str(stage)), "as_of": timestamp_column(as_of), "date": F.lit(as_of.date())}
    return rows.where("memory IS NOT NULL").withColumns(made).select(*POLICY_MEMORY.columns)
