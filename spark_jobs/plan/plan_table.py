"""Rows of ``gold.plans`` and ``gold.policy_memory``, from the rows that executors made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import PLANS, POLICY_MEMORY
from include.utc import format_utc
from spark_jobs.newest_rows import JOB

ROW_COLUMNS = {**PLANS.columns, "memory": "STRING"}
"""Of a row of a plan, with what the policy leaves for the next one; of a job's rows the first one has it."""
_NOT_WRITTEN = ("date", "settings", "input_versions")
"""Columns that ``plans.json`` has not: a run from the beginning writes the same file."""


def select_memories(rows: DataFrame, stage: str) -> DataFrame:
    """Return the rows of gold.policy_memory among rows of :data:`ROW_COLUMNS`."""
    return rows.where("memory IS NOT NULL").withColumn("stage", F.lit(str(stage))).select(*POLICY_MEMORY.columns)


def read_written(plans: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of one plan as they go into ``plans.json``, in order."""
    rows = plans.drop(*_NOT_WRITTEN).toArrow().sort_by([(name, "ascending") for name in (*JOB, "step_index")])
    return [{name: _to_json(value) for name, value in row.items()} for row in rows.to_pylist()]


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_utc(value.replace(microsecond=0))
    return dict(sorted(value)) if isinstance(value, list) else value
