"""Backtest stage: each job's own history replayed under several policies -> ``gold.backtests``, one MLflow run; what
ran beside the least that the load needed -> ``gold.certificates``.

The recommended policy of a job is a column and no action.  The stage may be killed and run again: the same time
replaces the same rows, and a finished run of the same figures is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from functools import partial

import pandas as pd
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stage_request import StageRequest
from include.version import stage_version
from lab.stages.backtest.comparison_log import MEASURES, log_comparison, means
from lab.stages.backtest.job_costs import ROW_SCHEMA, cost_job
from lab.stages.inputs.each_job import map_jobs, read_jobs
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.newest_rows import JOB
from spark_jobs.timestamps import as_of_slice, timestamp_column


def version_column(policies: Collection[str]) -> Column:
    """Return the version of this code with that of the policy in a row's column ``policy``, where it has one."""
    versions = {name: stage_version("backtest", [name]) for name in sorted(policies)}
    known = F.create_map(*(F.lit(text) for pair in versions.items() for text in pair))
    return F.coalesce(F.try_element_at(known, F.col("policy")), F.lit(stage_version("backtest")))


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Compare policies on the history of every job that the champion knows, and certify what ran.

    Raises:
        LostInputError: a comparison as of that time is there, and no table has a job any more.
    """
    as_of = request.as_of
    bundle = champion(settings)
    if bundle is None:  # nothing is known of any job
        return {"jobs": 0, "compared": 0, "skipped": {}}
    lake = Lake(spark, settings.paths.lake)
    task, jobs = read_jobs(lake, settings, bundle, as_of, timedelta(days=settings.backtest.days + 1))
    made = {
        "as_of": timestamp_column(as_of),
        "model_version": F.lit(bundle.model_version),
        "code_version": version_column(settings.backtest.policies),
        "date": F.lit(as_of.date()),
    }
    rows = map_jobs(jobs.localCheckpoint(), partial(cost_job, task), ROW_SCHEMA).withColumns(made).localCheckpoint()
    if rows.isEmpty():
        lake.require_empty(tables.BACKTESTS, as_of_slice(as_of))
    for table, which in ((tables.BACKTESTS, "policy IS NOT NULL"), (tables.CERTIFICATES, "policy IS NULL")):
        lake.replace(table, rows.where(which).select(*table.columns), as_of_slice(as_of))
    result = rows.orderBy(*JOB, "policy").toPandas()
    compared, certified = result[result["policy"].notna()], result[result["policy"].isna()]
    if len(compared):
        columns = [name for name in tables.BACKTESTS.columns if name not in made]
        log_comparison(settings, as_of, compared[columns], bundle.model_version)
    return counts(compared, certified["left_out"].dropna()) | count_certificates(certified)


def count_certificates(rows: pd.DataFrame) -> dict[str, object]:
    """Count certificates, and name the jobs with most regret."""
    made = rows[rows["skipped"].isna()]
    most = made.sort_values("regret", ascending=False).head(5)
    return {
        "certified": len(made),
        "most_regret": {
            f"{row['cluster']}/{row['job']}": f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"
            for row in most.to_dict("records")
        },
    }


def counts(compared: pd.DataFrame, left_out: pd.Series) -> dict[str, object]:
    """Count jobs: compared, left out by reason, better off with another policy, failed; and means per policy."""
    other = compared["recommended"].eq(True) & ~compared["in_use"].eq(True)
    return {
        "jobs": len(compared[JOB].drop_duplicates()) + len(left_out),
        "compared": len(compared[JOB].drop_duplicates()),
        "failed": int(compared["error"].notna().sum()),
        "other_recommended": int(other.sum()),
        "skipped": dict(sorted(Counter(left_out).items())),
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
