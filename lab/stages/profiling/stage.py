"""Profiling stage: Phoebe's profiling phase of jobs whose policy uses a profile -> ``gold.profiles``, policy memories.

A job keeps the rest of what its policy remembers.  The stage may be killed and run again: the same time gives the
same rows, as far as the adapter measures the same.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.policy_catalogue import catalogue, entry_of, names_where
from include.settings import Planner, Settings
from include.stage_names import PROFILING
from include.stage_request import StageRequest
from include.utc import format_utc
from include.version import stage_version
from lab.stages.inputs.newest_rows import memory_rows, read_graphs, read_memories
from lab.stages.inputs.windows import has_policy
from lab.stages.profiling.adapters import adapter
from lab.stages.profiling.job_profile import ROW_SCHEMA, ProfileTask, make_profiler
from spark_jobs.lake import Lake
from spark_jobs.model_store import load_bundle
from spark_jobs.newest_rows import JOB, LOOKBACK
from spark_jobs.plan_inputs.policy_memory import own_memories
from spark_jobs.timestamps import as_of_slice, timestamp_column


def worker_loads(observations: DataFrame, as_of: datetime) -> DataFrame:
    """Return each job's ``worker_load_per_s``: its highest load over its workers, in undisturbed windows of two days.

    The workers of a window are the largest parallelism of an operator, which share slots.
    """
    ended = F.unix_timestamp("window_start") + F.col("window_s") <= F.unix_timestamp(timestamp_column(as_of))
    arrived = F.coalesce("target_data_rate_per_s", "observed_processing_rate_per_s")
    days = F.col("date").between(F.lit((as_of - LOOKBACK).date()), F.lit(as_of.date()))
    observed = observations.where(days & ended & ~F.coalesce(F.col("disturbed"), F.lit(False)))
    windows = observed.groupBy(*JOB, "window_start").agg(
        F.sum(F.when(F.col("is_source"), arrived)).alias("load_per_s"), F.max("parallelism").alias("workers")
    )
    return windows.groupBy(*JOB).agg(F.max(F.col("load_per_s") / F.col("workers")).alias("worker_load_per_s"))


def states(lake: Lake, options: Planner, request: StageRequest) -> DataFrame:
    """Return one row per job to profile: its operators, its load and what its policy remembers."""
    wanted = has_policy(options, names_where(options.policies_in_use, needs_profile=True))
    if request.job:
        wanted = wanted & (F.concat_ws("/", *JOB) == F.lit(request.job))
    as_of = request.as_of
    return (
        read_graphs(lake, as_of)
        .where(wanted)
        .join(worker_loads(lake.read(tables.OBSERVATIONS), as_of), JOB, "left")
        .join(read_memories(lake, as_of), JOB, "left")
        .select(*JOB, "operators", "worker_load_per_s", "memory", "memory_policy")
    )


def profile_rows(rows: DataFrame, settings: Settings, as_of: datetime, model_version: str) -> DataFrame:
    """Return the rows of gold.profiles."""
    made = {
        "as_of": timestamp_column(as_of),
        "adapter": F.lit(settings.profiling.adapter),
        "model_version": F.lit(model_version),
        "code_version": F.lit(stage_version(PROFILING)),
        "date": F.lit(as_of.date()),
    }
    return rows.where("kind IS NOT NULL").withColumns(made).select(*tables.PROFILES.columns)


def check_job(options: Planner, job: str) -> None:
    """Refuse a job whose policy has no use for a profile.

    Raises:
        ValueError: with what to set.
    """
    cluster, _, name = job.partition("/")
    if not name:
        raise ValueError(f'a job is named "cluster/job", not "{job}"')
    if not entry_of(chosen := options.policy_of(cluster, name)).needs_profile:
        raise ValueError(
            f'job "{job}" (cluster/job) has policy {chosen}, which uses no profile: set one of '
            f"{sorted(names_where(catalogue(), needs_profile=True))} for it in planner.policies first"
        )


def only(job: str | None) -> str:
    """Return the further condition on a slice when one job alone is profiled."""
    if job is None:
        return ""
    cluster, name = (part.replace("\\", "\\\\").replace("'", "\\'") for part in job.split("/", maxsplit=1))
    return f" AND cluster = '{cluster}' AND job = '{name}'"


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Profile one job or all.

    Raises:
        ValueError: the settings name an unknown adapter or policy, the job was not observed or its policy uses
            no profile.
        NoChampionError: there are no models yet.
        LostInputError: profiles as of that time are there, and no table has a job any more.
    """
    options, as_of = settings.planner, request.as_of
    adapter(settings.profiling.adapter)
    if request.job:
        check_job(options, request.job)
    bundle = load_bundle(settings)
    lake = Lake(spark, settings.paths.lake)
    task = ProfileTask(settings, as_of, spark.sparkContext.broadcast(bundle))
    # Few bytes and much work per job: left to itself, Spark would put all jobs into one task.
    partitioned = states(lake, options, request).repartition(spark.sparkContext.defaultParallelism, *JOB)
    rows = partitioned.groupBy(*JOB).applyInPandas(make_profiler(task), ROW_SCHEMA).localCheckpoint()  # type: ignore[arg-type]
    result = Counter(row["refusal"] for row in rows.where("kind IS NULL").select("refusal").collect())
    if request.job and not result:
        raise ValueError(f'job "{request.job}" was not seen in the two days before {format_utc(as_of)}')
    one = only(request.job)
    if not result:
        lake.require_empty(tables.PROFILES, as_of_slice(as_of))
    measured = profile_rows(rows, settings, as_of, bundle.model_version)
    lake.replace(tables.PROFILES, measured, as_of_slice(as_of) + one)
    lake.replace(tables.POLICY_MEMORY, memory_rows(rows, PROFILING, as_of), own_memories(PROFILING, as_of) + one)
    refused = {str(name): count for name, count in sorted(result.items(), key=str) if name}
    return {"jobs": result.total(), "profiled": result[None], "refused": refused}
