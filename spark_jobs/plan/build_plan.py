"""From the tables, at given versions, to the rows of a plan: the same input gives the same rows, now and later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stage_names import LEARN, PROFILING, Stage
from include.tables import PARALLELISM, Table
from include.tables.plan_row import PARALLELISMS, TIMES
from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.code_versions import version_column
from spark_jobs.few_rows import from_table, read_few
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB, job_states, newest_forecasts, read_newest_hours
from spark_jobs.plan.few_jobs import FewJobs
from spark_jobs.plan.job_plan import PlanTask, planner
from spark_jobs.plan.model_trust import ModelTrust, explain_no_champion, read_trust
from spark_jobs.plan.plan_rows import ROW_SCHEMA
from spark_jobs.plan.plan_table import list_memories, list_plans
from spark_jobs.plan.slot_budget import allocations, budgets
from spark_jobs.plan_inputs.packed_rows import send_packed, spread
from spark_jobs.plan_inputs.past_loads import any_replans, past_loads
from spark_jobs.plan_inputs.policy_memory import memory_rows, newest_memories
from spark_jobs.plan_inputs.struct_arrays import map_rows
from spark_jobs.plan_inputs.windows import any_observes, recent_windows
from spark_jobs.source_inputs.renames import (
    FormerVersions,
    current_names,
    describe_versions,
    find_renames,
    follow_renames,
    list_versions,
    read_versions,
)
from spark_jobs.timestamps import timestamp_column

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
class Made:
    """A plan that is not written yet: as Arrow where jobs are few, else as frames that are kept.

    Attributes:
        plans: rows of gold.plans.
        memories: rows of gold.policy_memory.
        over_budget: clusters whose jobs cannot keep their budget.
    """

    plans: DataFrame | pa.Table
    memories: DataFrame | pa.Table
    over_budget: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether there is no job."""
        return len(self.plans) == 0 if isinstance(self.plans, pa.Table) else self.plans.isEmpty()

    def frame(self, lake: Lake) -> DataFrame:
        """Return the rows of gold.plans as a frame."""
        plans = self.plans
        return from_table(lake.spark, tables.PLANS, plans) if isinstance(plans, pa.Table) else plans


def current_versions(lake: Lake) -> dict[str, int]:
    """Return table -> Delta version, of the inputs that exist."""
    result = {table.name: lake.version(table) for table in INPUTS}
    return {name: version for name, version in result.items() if version is not None}


def shaping(settings: Settings) -> str:
    """Return the settings that shape a plan as canonical JSON."""
    clusters = {name: cluster.model_dump(mode="json") for name, cluster in settings.clusters.items()}
    planner = settings.planner.model_dump(mode="json")
    priorities = {job: one.priority for job, one in settings.limits.jobs.items() if one.priority}
    return json.dumps(
        {"planner": planner, "policies": settings.policies, "clusters": clusters, "priorities": priorities},
        sort_keys=True,
        default=str,
    )


def make(lake: Lake, settings: Settings, as_of: datetime, bundle: FleetBundle | None, versions: Versions) -> Made:
    """Make the plan of all jobs.

    Args:
        lake: the tables.
        settings: of the run.
        as_of: the moment of planning.
        bundle: models of the fleet; None when there are none.
        versions: table -> Delta version to read; a table that is not named did not exist.
    """
    trainings = read_few(lake, tables.MODEL_VERSIONS, as_of, as_of, versions.get(tables.MODEL_VERSIONS.name))
    context = lake.spark.sparkContext
    task = PlanTask(settings, as_of, context.broadcast(bundle) if bundle else None)
    if bundle is None:
        task = replace(task, no_champion=explain_no_champion(trainings, as_of))
    former = read_versions(lake, as_of - VERSIONS_SINCE, as_of, versions.get(tables.OPERATOR_KEYS.name))
    few = FewJobs(lake, versions, task)
    is_few = few.are_few()
    with ThreadPoolExecutor() as pool:  # while one is planned, the others keep the cores busy
        asked = (trainings, bundle.model_version, as_of, settings.planner) if bundle else None
        trust = pool.submit(read_trust, *asked) if asked else None
        if is_few:
            current = current_names(former) if any_observes(settings.planner) else {}
            states = send_packed(lake.spark, few.read_states(describe_versions(former), current))
        else:
            parts = read_parts(lake, task, versions, former)
            retained = list(pool.map(lambda part: part.localCheckpoint(), parts))
            states = reduce(lambda states, part: states.join(part, JOB, "left"), retained)
    task = replace(task, trust=trust.result() if trust else ModelTrust())
    if budgets(task) and not is_few:  # they are read once for the prices and once for the plans
        states = states.localCheckpoint()
    result = allocations(states, task)
    rows = decide_jobs(states, replace(task, offers={name: one.prices for name, one in result.items()}))
    over_budget = sorted(name for name, one in result.items() if not one.fits)
    if is_few:
        made = rows.toArrow()
        plans = list_plans(made, task, versions, shaping(settings))
        return Made(plans, list_memories(made, Stage.PLAN, as_of), over_budget)
    rows = rows.localCheckpoint()  # both tables are written from them
    return Made(make_plan_rows(rows, task, versions), memory_rows(rows, Stage.PLAN, as_of), over_budget)


def read_parts(lake: Lake, task: PlanTask, versions: Versions, former: FormerVersions) -> list[DataFrame]:
    """Return what is known of jobs as frames: their states, and what is joined to these by job."""

    def read(table: Table) -> DataFrame:
        return lake.read(table, versions.get(table.name))

    settings, as_of = task.settings, task.as_of
    horizon, observations = timedelta(hours=settings.planner.horizon_h), read(tables.OBSERVATIONS)
    graphs, jobs = (
        read_newest_hours(lake, table, as_of, versions.get(table.name)) for table in (tables.JOB_GRAPHS, tables.JOBS)
    )
    known = job_states(graphs, jobs, observations, as_of, horizon)
    forecasts = newest_forecasts(read(tables.FORECASTS), as_of)
    renames = find_renames(lake, former) if any_observes(settings.planner) else None
    windows = history(follow_renames(observations, renames), lake.read(tables.POLICY_MEMORY), task)
    return [known, forecasts, list_versions(lake, former), *windows]


def decide_jobs(states: DataFrame, task: PlanTask) -> DataFrame:
    """Decide on every job that has a state; a forecast without one is of a job that no longer runs.

    Returns rows of ROW_SCHEMA, which are worked out each time that they are asked for.
    """
    ours = spread(states, task.settings.spark.shuffle_partitions, *JOB)
    return ours.mapInArrow(map_rows(planner(task), ROW_SCHEMA), ROW_SCHEMA)


def make_plan_rows(rows: DataFrame, task: PlanTask, versions: Versions) -> DataFrame:
    """Return the rows of gold.plans."""
    version = task.bundle.value.model_version if task.bundle else None
    made: dict[str, Column] = {
        "as_of": timestamp_column(task.as_of),
        **{column: F.timestamp_seconds(name) for name, column in TIMES.items()},
        **{name: F.from_json(name, PARALLELISM) for name in PARALLELISMS},
        "model_version": F.lit(version).cast("string"),
        "code_version": version_column(Stage.PLAN, task.settings.planner.policies_in_use),
        "input_versions": F.from_json(F.lit(json.dumps(dict(versions), sort_keys=True)), "MAP<STRING, BIGINT>"),
        "settings": F.lit(shaping(task.settings)),
        "date": F.lit(task.as_of.date()),
    }
    return rows.withColumns(made).select(*tables.PLANS.columns)


def history(observations: DataFrame, memories: DataFrame, task: PlanTask) -> list[DataFrame]:
    """Return the latest windows, and the memory, of jobs whose policy has use for them; nothing when none has."""
    options = task.settings.planner
    if not any_observes(options):
        return []
    windows = recent_windows(observations, options, task.as_of)
    # Learning and profiling as of the same moment come before the plan.
    remembered = newest_memories(memories, task.as_of, also=(LEARN, PROFILING))
    if not any_replans(options):
        return [windows, remembered]
    return [windows, remembered, past_loads(observations, remembered, options, task.as_of)]
