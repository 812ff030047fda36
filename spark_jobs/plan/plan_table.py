"""Rows of ``gold.plans`` and ``gold.policy_memory``, from the rows that executors made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.stage_names import Stage
from include.tables import PLANS, POLICY_MEMORY
from include.tables.plan_row import PARALLELISMS, TIMES
from include.utc import format_utc
from spark_jobs.code_versions import find_versions
from spark_jobs.newest_rows import JOB
from spark_jobs.plan.job_plan import PlanTask
from spark_jobs.timestamps import timestamp_column

_NOT_WRITTEN = ("date", "settings", "input_versions")
"""Columns that ``plans.json`` has not: a run from the beginning writes the same file."""


def select_plans(rows: DataFrame, task: PlanTask, versions: Mapping[str, int], settings: str) -> DataFrame:
    """Return the rows of gold.plans.

    Args:
        rows: of :data:`spark_jobs.plan.plan_rows.ROW_SCHEMA`.
        task: of the plan.
        versions: of the tables that were read.
        settings: that shape the plan, as JSON.
    """
    policies = sorted(task.settings.planner.policies_in_use)
    code = find_versions(Stage.PLAN, policies)
    own_code = [F.when(F.col("policy") == name, code(name)) for name in policies]
    made: dict[str, Column] = {
        "as_of": timestamp_column(task.as_of),
        "model_version": F.lit(task.bundle.value.model_version if task.bundle else None),
        "input_versions": _read_json(F.lit(json.dumps(dict(versions), sort_keys=True)), "input_versions"),
        "settings": F.lit(settings),
        "date": F.lit(task.as_of.date()),
        "code_version": F.coalesce(*own_code, F.lit(code(None))),
    }
    made |= {column: F.timestamp_seconds(name) for name, column in TIMES.items()}
    made |= {name: _read_json(F.col(name), name) for name in PARALLELISMS}
    return _select(rows, PLANS.columns, made)


def select_memories(rows: DataFrame, stage: str, as_of: datetime) -> DataFrame:
    """Return the rows of gold.policy_memory among the rows that a stage made."""
    made = {"stage": F.lit(str(stage)), "as_of": timestamp_column(as_of), "date": F.lit(as_of.date())}
    return _select(rows.where("memory IS NOT NULL"), POLICY_MEMORY.columns, made)


def read_written(plans: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of one plan as they go into ``plans.json``, in order."""
    rows = plans.drop(*_NOT_WRITTEN).toArrow().sort_by([(name, "ascending") for name in (*JOB, "step_index")])
    return [{name: _to_json(value) for name, value in row.items()} for row in rows.to_pylist()]


def _read_json(text: Column, name: str) -> Column:
    return F.from_json(text, PLANS.columns[name])


def _select(rows: DataFrame, columns: Mapping[str, str], made: Mapping[str, Column]) -> DataFrame:
    return rows.select(*[made.get(name, F.col(name)).cast(kind).alias(name) for name, kind in columns.items()])


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_utc(value.replace(microsecond=0))
    return dict(sorted(value)) if isinstance(value, list) else value
