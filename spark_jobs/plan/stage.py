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

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.atomic_write import write_json
from include.place import place
from include.settings import Settings
from include.stages import Stage, StageRequest
from spark_jobs.job_inputs.newest_rows import JOB
from spark_jobs.job_inputs.policy_memory import memory_rows, own_memories
from spark_jobs.job_inputs.windows import any_observes
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.plan.build_plan import current_versions, make
from spark_jobs.timestamps import as_of_slice, timestamp_column

PLANS_FILE = "plans.json"


def plan_rows(plans: DataFrame, as_of: datetime) -> list[dict[str, Any]]:
    """Return the rows of one plan, sorted, with ISO 8601 times, as they go into ``plans.json``.

    Versions of inputs and settings stay in the table: a run from the beginning writes the same file.
    """
    columns = [
        F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss'Z'").alias(name) if kind == "TIMESTAMP" else F.col(name)
        for name, kind in tables.PLANS.columns.items()
        if name not in {"date", "settings", "input_versions"}
    ]
    made = plans.where((F.col("date") == F.lit(as_of.date())) & (F.col("as_of") == timestamp_column(as_of)))
    return [row.asDict() for row in made.orderBy(*JOB, "step_index").select(*columns).collect()]


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Plan all jobs as of ``request.as_of``; the same input gives the same rows.

    Raises:
        LostInputError: a plan of that time is there, and no table has a job any more.
    """
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(champion, settings)
        versions = current_versions(lake)
    made = make(lake, settings, as_of, loading.result(), versions)
    if made.rows.isEmpty():
        lake.require_empty(tables.PLANS, as_of_slice(as_of))
    if any_observes(settings.planner):
        lake.replace(tables.POLICY_MEMORY, memory_rows(made.rows, Stage.PLAN, as_of), own_memories(Stage.PLAN, as_of))
    lake.replace(tables.PLANS, made.plans, as_of_slice(as_of))
    plans = plan_rows(lake.read(tables.PLANS), as_of)
    write_json(place(settings.paths.out) / PLANS_FILE, plans)
    result = Counter(row["status"] for row in plans)
    return {
        "jobs": len({(row["cluster"], row["job"]) for row in plans}),
        "steps": result["planned"],
        "held": result["hold"],
        "refused": result["refused"],
        "over_budget": made.over_budget,
    }
