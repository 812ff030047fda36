"""Plan stage: forecast x capacity -> timed steps per job, in ``gold.plans``.

Every job of the last two days gets at least one row: its steps, or ``hold`` when nothing need change, or ``refused``
with a named reason: past_horizon, job_ended, batch_job, no_graph, stale_metrics, load_unseen, no_model,
no_forecast, stale_forecast, unknown_operator, inputs_failed, policy_failed.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from include import tables
from include.atomic_write import write_json
from include.place import place
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.lake import Lake
from spark_jobs.model_store import ModelStore
from spark_jobs.plan.build_plan import build_plan, current_versions
from spark_jobs.plan.plan_table import read_written
from spark_jobs.plan_inputs.policy_memory import own_memories
from spark_jobs.plan_inputs.windows import any_observes
from spark_jobs.timestamps import as_of_slice

PLANS_FILE = "plans.json"


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
    made = build_plan(lake, settings, as_of, champion.bundle, versions)
    plans = read_written(made.plans)
    if not plans:
        lake.require_empty(tables.PLANS, as_of_slice(as_of))
    if any_observes(settings.planner):
        lake.replace(tables.POLICY_MEMORY, made.memories.coalesce(1), own_memories(Stage.PLAN, as_of))
    lake.replace(tables.PLANS, made.plans.coalesce(1), as_of_slice(as_of))
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
