"""Backtest stage: each job's own history replayed under several policies -> ``gold.backtests``, one MLflow run; what
ran beside the least that the load needed -> ``gold.certificates``.

The recommended policy of a job is a column and no action.  The stage may be killed and run again: the same time
replaces the same rows, and a finished run of the same figures is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.stages import StageRequest
from include.version import stage_version
from lab.backtest.comparison import BIN_S, DAY_BINS
from lab.stages.backtest import job_certificate
from lab.stages.backtest.comparison_log import MEASURES, log_comparison, means
from lab.stages.backtest.job_backtest import ROW_SCHEMA, BacktestTask, make_backtester
from lab.stages.backtest.job_certificate import CertificateTask, make_certifier
from lab.stages.inputs.subjects import history_frame, subjects
from lab.stages.inputs.what_ran import Followed, follow_jobs
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.newest_rows import JOB
from spark_jobs.source_inputs.source_windows import HistoryFrame
from spark_jobs.timestamps import as_of_slice, timestamp_column

# Jobs differ in how long they take: small tasks keep all cores busy to the end.
TASKS_PER_CORE = 4


def version_column(policies: Collection[str]) -> Column:
    """Return the version of this code with that of the policy in a row's column ``policy``, where it has one."""
    versions = {name: stage_version("backtest", [name]) for name in sorted(policies)}
    known = F.create_map(*(F.lit(text) for pair in versions.items() for text in pair))
    return F.coalesce(F.try_element_at(known, F.col("policy")), F.lit(stage_version("backtest")))


def backtest_rows(rows: DataFrame, as_of: datetime, model_version: str, policies: Collection[str]) -> DataFrame:
    """Return the rows of gold.backtests."""
    made = {
        "as_of": timestamp_column(as_of),
        "model_version": F.lit(model_version),
        "code_version": version_column(policies),
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
    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    jobs = subjects(lake, frame, as_of).localCheckpoint()
    partitioned = jobs.repartition(tasks, *JOB)
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
    certified = certify_jobs(lake, settings, frame, jobs.repartition(tasks, *JOB), task).localCheckpoint()
    made = certificate_rows(certified, as_of, bundle.model_version)
    lake.replace(tables.CERTIFICATES, made, as_of_slice(as_of))
    return counts(result) | count_certificates(certified.toPandas())


def certify_jobs(lake: Lake, settings: Settings, frame: HistoryFrame, jobs: DataFrame, task: BacktestTask) -> DataFrame:
    """Return rows of :data:`lab.stages.backtest.job_certificate.ROW_SCHEMA`, one per job."""
    end_s = frame.first_bin_s + frame.history_bins * frame.bin_s
    bins = (settings.backtest.days + 1) * DAY_BINS
    followed = Followed(end_s - bins * BIN_S, bins)
    own = CertificateTask(settings, task.first_bin_s, task.bins, followed, task.bundle)
    inputs = follow_jobs(lake, settings, jobs, followed)
    return inputs.groupBy(*JOB).applyInPandas(make_certifier(own), job_certificate.ROW_SCHEMA)  # type: ignore[arg-type]


def certificate_rows(rows: DataFrame, as_of: datetime, model_version: str) -> DataFrame:
    """Return the rows of gold.certificates."""
    made = {
        "as_of": timestamp_column(as_of),
        "model_version": F.lit(model_version),
        "code_version": F.lit(stage_version("backtest")),
        "date": F.lit(as_of.date()),
    }
    return rows.withColumns(made).select(*tables.CERTIFICATES.columns)


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
