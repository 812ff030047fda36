"""Plan stage: forecast x capacity -> timed steps per job, in ``gold.plans``.

Every job of the last two days gets at least one row: its steps, or ``hold`` when nothing need change, or ``refused``
with a named reason: past_horizon, job_ended, batch_job, no_graph, stale_metrics, load_unseen, no_model,
no_forecast, stale_forecast, unknown_operator, inputs_failed, policy_failed.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.atomic_write import write_json
from include.place import place
from include.settings import Settings
from include.stage_names import Stage
from include.stages import StageRequest
from include.tables import Table
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore
from spark_jobs.newest_rows import JOB
from spark_jobs.plan.build_plan import current_versions, make
from spark_jobs.plan.plan_table import NOT_WRITTEN, list_written
from spark_jobs.plan_inputs.policy_memory import own_memories
from spark_jobs.plan_inputs.windows import any_observes
from spark_jobs.timestamps import as_of_slice, timestamp_column

PLANS_FILE = "plans.json"


def plan_rows(plans: DataFrame, as_of: datetime) -> list[dict[str, Any]]:
    """Return the rows of one plan, sorted, with ISO 8601 times, as they go into ``plans.json``."""
    columns = [
        F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias(name) if kind == "TIMESTAMP" else F.col(name)
        for name, kind in tables.PLANS.columns.items()
        if name not in NOT_WRITTEN
    ]
    made = plans.where((F.col("date") == F.lit(as_of.date())) & (F.col("as_of") == timestamp_column(as_of)))
    rows = [row.asDict() for row in made.orderBy(*JOB, "step_index").select(*columns).collect()]
    return [{name: _sort_names(value) for name, value in row.items()} for row in rows]


def _sort_names(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def write(lake: Lake, table: Table, rows: DataFrame | pa.Table, where: str) -> None:
    """Replace a slice of a table by rows, those of few jobs without a Spark job."""
    if isinstance(rows, pa.Table):
        lake.few(table).replace(rows, where)
    else:
        lake.replace(table, rows, where)


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Plan all jobs as of ``request.as_of``; the same input gives the same rows.

    Raises:
        LostInputError: a plan of that time is there, and no table has a job any more.
    """
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(ModelStore(settings.mlflow).read_champion)
        versions = current_versions(lake)
    champion = loading.result()
    made = make(lake, settings, as_of, champion.bundle, versions)
    if made.is_empty:
        lake.require_empty(tables.PLANS, as_of_slice(as_of))
    if any_observes(settings.planner):
        write(lake, tables.POLICY_MEMORY, made.memories, own_memories(Stage.PLAN, as_of))
    write(lake, tables.PLANS, made.plans, as_of_slice(as_of))
    is_few = isinstance(made.plans, pa.Table)
    plans = list_written(made.plans) if is_few else plan_rows(lake.read(tables.PLANS), as_of)
    write_json(place(settings.paths.out) / PLANS_FILE, plans)
    result = Counter(row["status"] for row in plans)
    return {
        "jobs": len({(row["cluster"], row["job"]) for row in plans}),
        "steps": result["planned"],
        "held": result["hold"],
        "refused": result["refused"],
        "over_budget": made.over_budget,
        "models_lost": "; ".join(champion.lost),
    }
