"""Backtest stage: each job's own history replayed under several policies -> ``gold.backtests``, one MLflow run.

The recommended policy of a job is a column and no action.  The stage may be killed and run again: the same time
replaces the same rows, and a finished run of the same figures is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stages import Stage, StageRequest
from spark_jobs.backtest.comparison_log import MEASURES, log_comparison, means
from spark_jobs.backtest.job_backtest import ROW_SCHEMA, BacktestTask, make_backtester
from spark_jobs.code_versions import version_column
from spark_jobs.job_inputs.newest_rows import JOB
from spark_jobs.job_inputs.subjects import history_frame, subjects
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.timestamps import as_of_slice, timestamp_column

# Jobs differ in how long they take: small tasks keep all cores busy to the end.
TASKS_PER_CORE = 4


def backtest_rows(rows: DataFrame, as_of: datetime, model_version: str, policies: Collection[str]) -> DataFrame:
    """Return the rows of gold.backtests."""
    made = {
        "as_of": timestamp_column(as_of),
        "model_version": F.lit(model_version),
        "code_version": version_column(Stage.BACKTEST, policies),
        "date": F.lit(as_of.date()),
    }
    return rows.where("skipped IS NULL").withColumns(made).select(*tables.BACKTESTS.columns)


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Compare policies on the history of every job that the champion knows.

    Raises:
        LostInputError: a comparison as of that time is there, and no table has a job any more.
    """
    as_of = request.as_of
    bundle = champion(settings)
    if bundle is None:  # nothing is known of any job
        return {"jobs": 0, "compared": 0, "skipped": {}}
    lake, frame = Lake(spark, settings.paths.lake), history_frame(settings, as_of)
    task = BacktestTask(settings, frame.first_bin_s, frame.history_bins, spark.sparkContext.broadcast(bundle))
    # Few bytes and much work per job: left to itself, Spark would put all jobs into one task.
    partitioned = subjects(lake, frame, as_of).repartition(TASKS_PER_CORE * spark.sparkContext.defaultParallelism, *JOB)
    rows = partitioned.groupBy(*JOB).applyInPandas(make_backtester(task), ROW_SCHEMA).localCheckpoint()  # type: ignore[arg-type]
    if rows.isEmpty():
        lake.require_empty(tables.BACKTESTS, as_of_slice(as_of))
    lake.replace(
        tables.BACKTESTS,
        backtest_rows(rows, as_of, bundle.model_version, settings.backtest.policies),
        as_of_slice(as_of),
    )
    result = rows.orderBy(*JOB, "policy").toPandas()
    compared = result[result["skipped"].isna()].drop(columns="skipped")
    if len(compared):
        log_comparison(settings, as_of, compared, bundle.model_version)
    return counts(result)


def counts(result: pd.DataFrame) -> dict[str, object]:
    """Count jobs: compared, left out by reason, better off with another policy, failed; and means per policy."""
    skipped = Counter(result["skipped"].dropna())
    compared = result[result["skipped"].isna()]
    other = compared["recommended"].eq(True) & ~compared["in_use"].eq(True)
    return {
        "jobs": len(result[JOB].drop_duplicates()),
        "compared": len(compared[JOB].drop_duplicates()),
        "failed": int(compared["error"].notna().sum()),
        "other_recommended": int(other.sum()),
        "skipped": dict(sorted(skipped.items())),
        "planner_policies": {
            f"{row['cluster']}/{row['job']}": str(row["policy"]) for row in compared[other].to_dict("records")
        },
        "policies": policy_means(compared),
    }


def policy_means(compared: pd.DataFrame) -> list[dict[str, object]]:
    """Return the means of each policy over jobs, the cheapest first, and of how many jobs it is the recommended one."""
    chosen = compared.loc[compared["recommended"].eq(True), "policy"].value_counts()
    rows = means(compared).reset_index().to_dict("records")
    return [
        {
            "policy": str(row["policy"]),
            **{name: None if pd.isna(row[name]) else round(float(row[name]), 4) for name in MEASURES},
            "recommended_jobs": int(chosen.get(row["policy"], 0)),
        }
        for row in rows
    ]
