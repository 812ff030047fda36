"""Stage report: how jobs ran and what came of steps, by date; then the page of the fleet, saved as one file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include import tables
from include.arrow_rows import arrow_rows
from include.place import place
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import floor_day
from include.version import stage_version
from models.bundle.fleet_bundle import FleetBundle
from page.curves import Curve
from page.saving import save_page
from spark_jobs.few_rows import read_few
from spark_jobs.lake import Lake, planned_once
from spark_jobs.model_store import champion
from spark_jobs.one_job import collect_together
from spark_jobs.report.carried_out import count_carried_out
from spark_jobs.report.control_log import LOGGED, STEP
from spark_jobs.report.events import list_event_results
from spark_jobs.report.job_days import bin_load, count_days, count_paid_slots, sum_windows
from spark_jobs.report.step_results import PLAN_REACHES, PLANNED, STOPPED, due_steps, list_results, recent_rescales

RESULT_DAYS = 3
"""The results of steps of so many dates are found anew: a step is in effect for a day or two."""
FIRST_DAYS = 31
"""So many dates are counted where none is: in a lake of an earlier release."""
_JOB = ["cluster", "job"]


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Write what came of days, steps and events, and ``<out>/report.html``, as of the request's ``as_of``."""
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(champion, settings)
        days, results = write_results(lake, settings, as_of)
    bundle = loading.result()
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


def write_results(lake: Lake, settings: Settings, as_of: datetime) -> tuple[int, int]:
    """Replace what came of the last dates and of the steps that were due in them; returns the numbers of rows.

    A date that was counted until later stays.
    """
    known, today = _counted_until(lake, as_of), floor_day(as_of)
    since, shown = (today - timedelta(days=back - 1) for back in (RESULT_DAYS if known else FIRST_DAYS, RESULT_DAYS))
    dates = [(since + timedelta(days=place)).date() for place in range((today - since).days + 1)]
    dates = [one for one in dates if one not in known or known[one] <= as_of]
    log = read_few(lake, tables.CONTROL_LOG, since, as_of, [*STEP, *LOGGED])
    plans = read_few(lake, tables.PLANS, since - PLAN_REACHES, as_of, [*STEP, *PLANNED])
    stops = recent_rescales(read_few(lake, tables.RESCALES, since, as_of, [*_JOB, *STOPPED]), since, as_of)
    observations = lake.scan(tables.OBSERVATIONS, since, as_of)
    windows = sum_windows(observations, since, as_of, settings.planner.costs.late_after_s)
    due = due_steps(plans, log, shown, as_of)
    bins = bin_load(windows.where(F.col("window_start") >= F.lit(shown)))
    counted = count_days(
        count_paid_slots(windows, settings.taskmanager_slots), stops, count_carried_out(plans, log, since, as_of), as_of
    )
    frames = {
        "days": counted.where(F.col("date").isin(dates)),
        "steps": due,
        "load": bins.join(due.select(*_JOB).distinct(), _JOB, "left_semi"),
        "stops": stops.where(F.col("started_at") >= F.lit(shown)),
    }
    with planned_once(lake.spark, broadcasts=False):
        made = collect_together(frames)
    if dates:
        listed = ", ".join(f"'{one.isoformat()}'" for one in dates)
        lake.replace(tables.JOB_DAYS, made["days"], f"date IN ({listed})")
    steps, load, own_stops = (_to_pandas(made[name]) for name in ("steps", "load", "stops"))
    rows = list_rows(steps, load, own_stops, as_of)
    where = f"date >= '{shown.date().isoformat()}' AND date <= '{as_of.date().isoformat()}'"
    until = f"apply_at <= '{as_of.isoformat()}'"
    lake.replace(tables.STEP_RESULTS, arrow_rows(tables.STEP_RESULTS, rows), f"{where} AND {until}")
    return len(made["days"]), len(rows)


def list_rows(steps: pd.DataFrame, load: pd.DataFrame, stops: pd.DataFrame, as_of: datetime) -> list[dict[str, object]]:
    """Return the rows of ``gold.step_results`` of all jobs; see :func:`.step_results.list_results`."""
    loads, own_stops = dict(list(load.groupby(_JOB))), dict(list(stops.groupby(_JOB)))
    return [
        row
        for key, of_job in steps.groupby(_JOB)
        for row in list_results(of_job, loads.get(key, load.iloc[:0]), own_stops.get(key, stops.iloc[:0]), as_of)
    ]


def _to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Return rows with times in UTC without a zone."""
    kinds = [pa.timestamp("us") if pa.types.is_timestamp(one.type) else one.type for one in rows.schema]
    result: pd.DataFrame = rows.cast(pa.schema(zip(rows.column_names, kinds, strict=True))).to_pandas()
    return result


def _counted_until(lake: Lake, as_of: datetime) -> dict[date, datetime]:
    """Return until when each of the last dates was counted; files of older ones stay closed."""
    since = (floor_day(as_of) - timedelta(days=FIRST_DAYS - 1)).date()
    rows = lake.few(tables.JOB_DAYS).read(["date", "until"], since, as_of.date())
    newest = rows.group_by("date").aggregate([("until", "max")]).to_pylist()
    return {row["date"]: row["until_max"] for row in newest}


def write_event_results(lake: Lake, settings: Settings, as_of: datetime) -> None:
    """Replace what came of events, as this date has seen it."""
    if not settings.events:
        return
    rows = arrow_rows(tables.EVENT_RESULTS, list_event_results(lake, settings, as_of))
    lake.replace(tables.EVENT_RESULTS, rows, f"date = '{as_of.date().isoformat()}'")


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
