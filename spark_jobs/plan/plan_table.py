"""Rows of ``gold.plans`` and ``gold.policy_memory`` as Arrow, from the rows that executors made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_schema
from include.stage_names import Stage
from include.tables import PLANS, POLICY_MEMORY
from include.tables.plan_row import PARALLELISMS, TIMES
from include.utc import format_utc
from spark_jobs.code_versions import find_versions
from spark_jobs.newest_rows import JOB
from spark_jobs.plan.job_plan import PlanTask

_MOMENT = pa.timestamp("us", "UTC")
_NOT_WRITTEN = ("date", "settings", "input_versions")
"""Columns that ``plans.json`` has not: a run from the beginning writes the same file."""


def list_plans(rows: pa.Table, task: PlanTask, versions: Mapping[str, int], settings: str) -> pa.Table:
    """Return the rows of gold.plans, in order.

    Args:
        rows: of :data:`spark_jobs.plan.plan_rows.ROW_SCHEMA`.
        task: of the plan.
        versions: of the tables that were read.
        settings: that shape the plan, as JSON.
    """
    ordered = rows.sort_by([(name, "ascending") for name in (*JOB, "step_index")])
    schema, count = arrow_schema(PLANS), len(rows)
    model = task.bundle.value.model_version if task.bundle else None
    code = find_versions(Stage.PLAN, task.settings.planner.policies_in_use)
    shared: dict[str, Any] = {
        "as_of": task.as_of,
        "model_version": model,
        "input_versions": sorted(versions.items()),
        "settings": settings,
        "date": task.as_of.date(),
    }
    made = {name: pa.array([value] * count, schema.field(name).type) for name, value in shared.items()}
    made["code_version"] = pa.array([code(name) for name in ordered["policy"].to_pylist()], pa.string())
    made |= {column: ordered[name].cast(pa.timestamp("s", "UTC")).cast(_MOMENT) for name, column in TIMES.items()}
    for name in PARALLELISMS:
        values = [None if text is None else list(json.loads(text).items()) for text in ordered[name].to_pylist()]
        made[name] = pa.array(values, schema.field(name).type)
    columns = [made[name] if name in made else ordered[name] for name in PLANS.columns]
    return pa.table(columns, names=list(PLANS.columns)).cast(schema)


def list_memories(rows: pa.Table, stage: str, as_of: datetime) -> pa.Table:
    """Return the rows of gold.policy_memory among the rows that a stage made."""
    own = rows.filter(pc.is_valid(rows["memory"]))
    schema = arrow_schema(POLICY_MEMORY)
    shared = {"stage": str(stage), "as_of": as_of, "date": as_of.date()}
    made = {name: pa.array([value] * len(own), schema.field(name).type) for name, value in shared.items()}
    return pa.table({name: made[name] if name in made else own[name] for name in POLICY_MEMORY.columns}).cast(schema)


def list_written(plans: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of one plan as they go into ``plans.json``."""
    names = [name for name in PLANS.columns if name not in _NOT_WRITTEN]
    return [{name: _to_json(row[name]) for name in names} for row in plans.select(names).to_pylist()]


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_utc(value.replace(microsecond=0))
    return dict(sorted(value)) if isinstance(value, list) else value
