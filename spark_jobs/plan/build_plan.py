"""From the tables, at given versions, to the rows of a plan: the same input gives the same rows, now and later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame

from include import tables
from include.settings import Settings
from include.stage_names import Stage
from include.tables.plan_row import PlanRow
from include.version import stage_version
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.lake import Lake, keep, send_objects
from spark_jobs.packed_objects import arrow_batch, map_to_rows
from spark_jobs.plan.job_inputs import JobInputs
from spark_jobs.plan.job_plan import PlanTask, plan_jobs
from spark_jobs.plan.model_trust import ModelTrust, explain_no_champion, judge_trust
from spark_jobs.plan.plan_table import ROW_COLUMNS, select_memories
from spark_jobs.plan.slot_budget import allocate_slots
from spark_jobs.plan_inputs.windows import any_observes
from spark_jobs.source_inputs.renames import current_names, read_versions

# Memories are read as they are: only those from before the plan count, and a plan that is made twice writes its own in
# between, so that their version would tell a second run from the first.
INPUTS = (
    tables.OBSERVATIONS,
    tables.JOB_GRAPHS,
    tables.JOBS,
    tables.OPERATOR_KEYS,
    tables.FORECASTS,
    tables.MODEL_VERSIONS,
)
Versions = Mapping[str, int]
VERSIONS_SINCE = timedelta(days=3)  # windows, forecasts and memories of a job that is planned are younger


@dataclass(frozen=True, slots=True)
class PlanFrames:
    """A plan that is not written yet: frames of rows, worked out once, by who reads one of them first.

    Attributes:
        plans: rows of gold.plans.
        memories: rows of gold.policy_memory.
        over_budget: clusters whose jobs cannot keep their budget.
    """

    plans: DataFrame
    memories: DataFrame
    over_budget: list[str]


def current_versions(lake: Lake) -> dict[str, int]:
    """Return table -> Delta version, of the inputs that exist."""
    result = {table.name: lake.version(table) for table in INPUTS}
    return {name: version for name, version in result.items() if version is not None}


def dump_plan_settings(settings: Settings) -> str:
    """Return the settings that shape a plan as canonical JSON."""
    clusters = {name: cluster.model_dump(mode="json") for name, cluster in settings.clusters.items()}
    planner = settings.planner.model_dump(mode="json")
    priorities = {job: one.priority for job, one in settings.limits.jobs.items() if one.priority}
    return json.dumps(
        {"planner": planner, "policies": settings.policies, "clusters": clusters, "priorities": priorities},
        sort_keys=True,
        default=str,
    )


def build_plan(
    lake: Lake, settings: Settings, as_of: datetime, bundle: FleetBundle | None, versions: Versions
) -> PlanFrames:
    """Make the plan of all jobs, with the tables at their Delta versions; one that has none did not exist."""
    recorded = lake.few(tables.MODEL_VERSIONS, versions.get(tables.MODEL_VERSIONS.name))
    every = recorded.read([*tables.MODEL_VERSIONS.columns], date.min, date.max).to_pylist()
    trainings = [row for row in every if row["as_of"] <= as_of]
    version = None if bundle is None else bundle.model_version
    shared = PlanRow(model_version=version, input_versions=versions, settings=dump_plan_settings(settings))
    code = {name: stage_version(Stage.PLAN, [name]) for name in sorted(settings.planner.policies_in_use)}
    if bundle is None:
        trust, why = ModelTrust(), explain_no_champion(trainings)
    else:
        trust, why = judge_trust(trainings, bundle.model_version, as_of, settings.planner), ""
    models = lake.spark.sparkContext.broadcast(bundle) if bundle else None
    task = PlanTask(settings, as_of, models, trust, no_champion=why, shared=shared, code_versions=code)
    former = read_versions(lake, as_of - VERSIONS_SINCE, as_of, versions.get(tables.OPERATOR_KEYS.name))
    current = current_names(former) if any_observes(settings.planner) else {}
    inputs = JobInputs(lake, versions, task)
    # Kept by the executors: what the driver has read of one part goes before it reads the next.
    parts = [send_objects(lake.spark, part).localCheckpoint() for part in inputs.read_states(former, current)]
    states = reduce(DataFrame.union, parts)
    result = allocate_slots(states, task)
    priced = replace(task, offers={name: one.prices for name, one in result.items()})
    decided = map_to_rows(states, lambda known: iter([arrow_batch(plan_jobs(priced, known), ROW_COLUMNS)]), ROW_COLUMNS)
    made = keep(decided)  # by the first job that reads it
    over_budget = sorted(name for name, one in result.items() if not one.fits)
    return PlanFrames(made.select(*tables.PLANS.columns), select_memories(made, Stage.PLAN), over_budget)
