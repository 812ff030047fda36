"""Stage report: how jobs ran and what came of steps, by date; then the page of the fleet, saved as one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.arrow_rows import arrow_rows
from include.place import place
from include.settings import Settings
from include.stage_names import Stage
from include.stages import StageRequest
from include.utc import floor_day
from include.version import stage_version
from models.bundle.fleet_bundle import FleetBundle
from page.curves import Curve
from page.saving import save_page
from spark_jobs.lake import Lake, rows_of
from spark_jobs.model_store import NoChampionError, load_bundle
from spark_jobs.report.carried_out import count_carried_out
from spark_jobs.report.events import list_event_results
from spark_jobs.report.job_days import bin_load, count_days, count_paid_slots, sum_windows
from spark_jobs.report.step_results import due_steps, list_results, recent_rescales

RESULT_DAYS = 3
"""The results of steps of so many dates are found anew: a step is in effect for a day or two."""
FIRST_DAYS = 31
"""So many dates are counted where none is: in a lake of an earlier release."""
_JOB = ["cluster", "job"]


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Write what came of days, steps and events, and ``<out>/report.html``, as of the request's ``as_of``."""
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    late_after_s = settings.planner.costs.late_after_s
    with ThreadPoolExecutor() as pool:  # while one query is planned, the others keep the cores busy
        loading = pool.submit(_champion, settings)
        following = pool.submit(write_step_results, lake, as_of, late_after_s)
        days = write_job_days(lake, as_of, late_after_s, settings.taskmanager_slots)
    bundle, results = loading.result(), following.result()
    write_event_results(lake, settings, as_of)
    path = place(settings.paths.out) / "report.html"
    saved = save_page(
        settings,
        os.environ,
        as_of.timestamp(),
        path,
        read_curves=lambda cluster, job: list_curves(bundle, cluster, job),
        code_version=stage_version(Stage.REPORT),
    )
    return {"jobs": saved.jobs, "shown": saved.shown, "job_days": days, "step_results": results, "report": str(path)}


def write_job_days(lake: Lake, as_of: datetime, late_after_s: float, taskmanager_slots: Mapping[str, int]) -> int:
    """Replace the rows of the last dates; a date that was counted until later stays. Returns the number of rows."""
    known = _counted_until(lake, as_of)
    back = RESULT_DAYS if known else FIRST_DAYS
    since = floor_day(as_of) - timedelta(days=back - 1)
    dates = [(since + timedelta(days=place)).date() for place in range(back)]
    dates = [one for one in dates if one not in known or known[one] <= as_of]
    ran = sum_windows(lake.read(tables.OBSERVATIONS), since, as_of, late_after_s)
    windows = count_paid_slots(ran, taskmanager_slots)
    rescales = recent_rescales(lake.read(tables.RESCALES), since, as_of)
    due = count_carried_out(lake.read(tables.PLANS), lake.read(tables.CONTROL_LOG), since, as_of)
    rows = count_days(windows, rescales, due, as_of).where(F.col("date").isin(dates))
    counted = rows.coalesce(1).localCheckpoint()
    if dates:
        listed = ", ".join(f"'{one.isoformat()}'" for one in dates)
        lake.replace(tables.JOB_DAYS, counted, f"date IN ({listed})")
    return counted.count()


def _counted_until(lake: Lake, as_of: datetime) -> dict[date, datetime]:
    """Return until when each of the last dates was counted; files of older ones stay closed."""
    since = (floor_day(as_of) - timedelta(days=FIRST_DAYS - 1)).date()
    rows = lake.few(tables.JOB_DAYS).read(["date", "until"], since, as_of.date())
    newest = rows.group_by("date").aggregate([("until", "max")]).to_pylist()
    return {row["date"]: row["until_max"] for row in newest}


def write_step_results(lake: Lake, as_of: datetime, late_after_s: float) -> int:
    """Replace the results of the steps that were due in the last days; returns the number of rows."""
    since = floor_day(as_of) - timedelta(days=RESULT_DAYS - 1)
    steps = due_steps(lake.read(tables.PLANS), lake.read(tables.CONTROL_LOG), since, as_of).toPandas()
    rows: list[dict[str, object]] = []
    if len(steps):
        pairs = steps[_JOB].drop_duplicates().itertuples(index=False)
        names = [{"cluster": str(cluster), "job": str(job)} for cluster, job in pairs]
        mine = rows_of(lake.spark, dict.fromkeys(_JOB, "STRING"), names)
        load = _of(bin_load(lake.read(tables.OBSERVATIONS), since, as_of, late_after_s), mine)
        rescales = _of(recent_rescales(lake.read(tables.RESCALES), since, as_of), mine)
        loads, stops = dict(list(load.groupby(_JOB))), dict(list(rescales.groupby(_JOB)))
        for key, of_job in steps.groupby(_JOB):
            rows += list_results(of_job, loads.get(key, load.iloc[:0]), stops.get(key, rescales.iloc[:0]), as_of)
    where = f"date >= '{since.date().isoformat()}' AND date <= '{as_of.date().isoformat()}'"
    until = f"apply_at <= '{as_of.isoformat()}'"
    lake.replace(tables.STEP_RESULTS, arrow_rows(tables.STEP_RESULTS, rows), f"{where} AND {until}")
    return len(rows)


def write_event_results(lake: Lake, settings: Settings, as_of: datetime) -> None:
    """Replace what came of events, as this date has seen it."""
    if not settings.events:
        return
    rows = arrow_rows(tables.EVENT_RESULTS, list_event_results(lake, settings, as_of))
    lake.replace(tables.EVENT_RESULTS, rows, f"date = '{as_of.date().isoformat()}'")


def _of(rows: DataFrame, jobs: DataFrame) -> pd.DataFrame:
    return rows.join(F.broadcast(jobs), _JOB, "left_semi").toPandas()


def list_curves(bundle: FleetBundle | None, cluster: str, job: str) -> list[Curve]:
    """Return what each operator of a job was learnt to process; nothing without a model of it."""
    if bundle is None or (cluster, job) not in bundle.jobs():
        return []
    return [
        Curve(
            operator,
            curve.parallelism.tolist(),
            curve.mean_per_s.tolist(),
            curve.sd_per_s.tolist(),
            curve.observed.tolist(),
            curve.observed_per_s.tolist(),
        )
        for operator, curve in bundle.for_job(cluster, job).capacity.items()
    ]


def _champion(settings: Settings) -> FleetBundle | None:
    try:
        return load_bundle(settings)
    except NoChampionError:
        return None  # the page says so: every job is refused with no_model
