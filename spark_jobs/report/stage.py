"""Stage report: one self-contained HTML page about the newest plan, made from tables and the champion's models."""

from __future__ import annotations

from datetime import datetime, timedelta

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from include import tables
from include.place import place
from include.settings import Settings
from include.stages import Stage, StageRequest
from include.utc import format_utc
from include.version import stage_version
from spark_jobs.lake import Lake
from spark_jobs.report.carried_out import count_carried_out
from spark_jobs.report.control_log import STEP, logged_rows, step_outcomes
from spark_jobs.report.job_reports import Rows, job_reports
from spark_jobs.report.outcomes import PLAN_REACHES, due_steps, newest_backtests, recent_rescales
from spark_jobs.report.page import write
from spark_jobs.report.page_data import Report
from spark_jobs.report.text_tables import forecast_rows, model_rows, quality_rows, quarantine_rows
from spark_jobs.session import threads

JOBS_SHOWN = 40
HISTORY_DAYS = 3
PLAN_DAYS = 7  # an older plan is no plan any more
BACKTEST_DAYS = 35
SHORTLY_S = 3600


def of_last_days(as_of: Column, days: int) -> Column:
    """Return the filter on the partition column: without it every day of a table is opened."""
    return F.col("date").between(F.to_date(as_of - F.expr(f"INTERVAL {days} DAYS")), F.to_date(as_of))


def newest_plan(plans: DataFrame, as_of: Column) -> DataFrame:
    """Keep the rows of the newest plan made at or before ``as_of``, in the days before it."""
    made = plans.where(of_last_days(as_of, PLAN_DAYS) & (F.col("as_of") <= as_of))
    newest = made.agg(F.max("as_of").alias("as_of"))
    return made.join(F.broadcast(newest), "as_of", "left_semi")


def select_most_changed(plan: DataFrame, count: int) -> DataFrame:
    """Return ``cluster, job`` of the jobs whose plan changes most, the refused ones first: they need a person."""
    refused = F.max((F.col("status") == "refused").cast("int")).alias("refused")
    moved = F.sum(F.abs("slot_hours_saved")).alias("moved")
    ranked = plan.groupBy("cluster", "job").agg(refused, moved)
    return (
        ranked.orderBy(F.desc("refused"), F.desc_nulls_last("moved"), "cluster", "job")
        .limit(count)
        .select("cluster", "job")
    )


def load_history(observations: DataFrame, as_of: Column, late_after_s: float) -> DataFrame:
    """Return per job and bin the load of all sources, the slots in use and the share of time late over the last days.

    A window is late when the oldest record that waits at some source is older than ``late_after_s``.
    """
    since = as_of - F.expr(f"INTERVAL {HISTORY_DAYS} DAYS")
    of_days = observations.where(of_last_days(as_of, HISTORY_DAYS))
    recent = of_days.where(F.col("window_start").between(since, as_of))
    binned = recent.withColumn("bin", F.window("window_start", "5 minutes").start)
    per_operator = binned.groupBy("cluster", "job", "operator", "bin").agg(
        F.avg(F.when(F.col("is_source"), F.col("target_data_rate_per_s"))).alias("rate_per_s"),
        F.max("parallelism").alias("parallelism"),
        F.avg((F.col("latency_ms") > 1000.0 * late_after_s).cast("double")).alias("late_share"),
    )
    per_job = per_operator.groupBy("cluster", "job", "bin")
    sums = [F.sum("rate_per_s").alias("rate_per_s"), F.max("parallelism").alias("slots")]
    late = F.coalesce(F.max("late_share"), F.lit(0.0)).alias("late_share")
    return per_job.agg(*sums, late).orderBy("cluster", "job", "bin")


def newest_forecast(forecasts: DataFrame, as_of: Column) -> DataFrame:
    """Return per job and bin the newest forecast's quantiles, its sources added up."""
    return _sum_sources(newest_plan(forecasts, as_of))


def earlier_forecasts(forecasts: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return per job and bin the last forecast within the hour before it, for bins that are over."""
    ahead_s = F.unix_timestamp("bin_start") - F.unix_timestamp("as_of")
    of_days = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    over = F.col("bin_start").between(F.lit(since), F.lit(as_of)) & (F.col("as_of") < F.lit(as_of))
    shortly = forecasts.where(of_days & over & ahead_s.between(0, SHORTLY_S))
    newest = Window.partitionBy("cluster", "job", "operator", "bin_start").orderBy(F.desc("as_of"))
    return _sum_sources(shortly.withColumn("rank", F.row_number().over(newest)).where("rank = 1"))


def _sum_sources(forecasts: DataFrame) -> DataFrame:
    """Add up the sources of each job."""
    quantiles = [F.sum(name).alias(name) for name in ("q10_per_s", "q50_per_s", "q90_per_s")]
    notes = [F.collect_set("method").alias("methods"), F.collect_set("fallback_reason").alias("fallback_reasons")]
    bins = forecasts.groupBy("cluster", "job", "bin_start").agg(*quantiles, *notes)
    return bins.orderBy("cluster", "job", "bin_start")


def add_outcomes(plan: DataFrame, log: DataFrame, as_of: datetime) -> DataFrame:
    """Add what became of each step to the plan, since it was made."""
    outcomes = step_outcomes(log, as_of.date(), (as_of + PLAN_REACHES).date()).select(*STEP, "outcome")
    joined = plan.join(outcomes, [*STEP], "left")
    return joined.withColumn("outcome", F.coalesce("outcome", F.lit(""))).orderBy("cluster", "job", "step_index")


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Write ``<out>/report.html`` for the newest plan at or before the request's ``as_of``."""
    lake = Lake(spark, settings.paths.lake)
    as_of = F.lit(format_utc(request.as_of)).cast("timestamp")
    now, since = request.as_of, request.as_of - timedelta(days=HISTORY_DAYS)
    plans, log, forecasts = (lake.read(table) for table in (tables.PLANS, tables.CONTROL_LOG, tables.FORECASTS))
    compared = lake.read(tables.BACKTESTS).where(of_last_days(as_of, BACKTEST_DAYS))
    refused = lake.read(tables.QUARANTINE).where(of_last_days(as_of, PLAN_DAYS))
    scored = lake.read(tables.FORECAST_SCORES).where(of_last_days(as_of, PLAN_DAYS))
    plan = add_outcomes(newest_plan(plans, as_of), log, now).cache()
    shown = select_most_changed(plan, JOBS_SHOWN).cache()
    late_after_s = settings.planner.costs.late_after_s

    def collect(frame: DataFrame) -> pd.DataFrame:
        return frame.join(F.broadcast(shown), ["cluster", "job"], "left_semi").toPandas()

    # Of the time of so small queries most is their planning in the driver, and several are planned at once.
    with threads(spark) as pool:
        load = pool.submit(lambda: collect(load_history(lake.read(tables.OBSERVATIONS), as_of, late_after_s)))
        steps = pool.submit(collect, plan)
        forecast = pool.submit(lambda: collect(newest_forecast(forecasts, as_of)))
        earlier = pool.submit(lambda: collect(earlier_forecasts(forecasts, since, now)))
        due = pool.submit(lambda: collect(due_steps(plans, log, since, now)))
        carried_out = pool.submit(lambda: collect(count_carried_out(plans, log, since, now)))
        logged = pool.submit(lambda: collect(logged_rows(log, now)))
        rescales = pool.submit(lambda: collect(recent_rescales(lake.read(tables.RESCALES), since, now)))
        backtests = pool.submit(lambda: collect(newest_backtests(compared, as_of)))
        total = pool.submit(lambda: plan.select("cluster", "job").distinct().count())
        quality = pool.submit(lambda: quality_rows(lake.read(tables.QUALITY)))
        quarantine = pool.submit(lambda: quarantine_rows(refused))
        models = pool.submit(lambda: model_rows(lake.read(tables.MODEL_VERSIONS), as_of))
        scores = pool.submit(lambda: forecast_rows(scored, as_of))
        rows = Rows(
            plan=steps.result(),
            load=load.result(),
            forecast=forecast.result(),
            earlier=earlier.result(),
            due=due.result(),
            carried_out=carried_out.result(),
            rescales=rescales.result(),
            backtests=backtests.result(),
            log=logged.result(),
        )
        report = Report(
            as_of=request.as_of,
            code_version=stage_version(Stage.REPORT),
            jobs=job_reports(settings, now, rows),
            jobs_total=total.result(),
            quality=quality.result(),
            quarantine=quarantine.result(),
            models=models.result(),
            forecasts=scores.result(),
        )
    path = place(settings.paths.out) / "report.html"
    write(report, path)
    return {"jobs": report.jobs_total, "shown": len(report.jobs), "report": str(path)}
