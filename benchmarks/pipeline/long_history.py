"""What a year of history costs: a pass, a tick and the page of 100 jobs with a month in the lake, then with a year.

Set-up, not timed: the fleet of :mod:`benchmarks.pipeline.hourly` with a month of sources and of the control log; then
eleven months more of both, copies of the first by their dates. Everything of a pass runs twice and the second counts:
the first fills what is kept between passes.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import functions as F

from benchmarks.measurement import Measurement
from benchmarks.pipeline import hourly, page
from benchmarks.pipeline.made_fleet import Size, log_rows
from controller.wiring import build_ticker
from include.lake_table import LakeTable
from include.settings import load_settings
from include.stage_names import Stage
from include.tables import CONTROL_LOG, OBSERVATIONS
from spark_jobs.lake import Lake, date_hour_columns
from spark_jobs.session import start_session

JOBS, OPERATORS, MONTHS = 100, 8, 13  # of 28 days
MONTH = timedelta(days=hourly.HISTORY_DAYS)
LOG_ROWS_PER_JOB_DAY = 24
TICKS = 12


def run(work: Path, jobs: int = JOBS, operators: int = OPERATORS) -> list[Measurement]:
    """Measure both.

    Args:
        work: an empty directory; everything is written below it.
        jobs: size of the fleet.
        operators: of each job.
    """
    with hourly.environment(work):
        hourly.prepare(work, jobs, operators)
        lake = load_settings().paths.lake
        write_log(lake, jobs, hourly.END, 1)
        with_month = measure(work, lake, jobs)
        add_months(jobs)
        with_year = measure(work, lake, jobs)
    return [
        Measurement(
            f"{name}, {jobs} jobs, with a year; reference: with a month",
            with_year[name],
            "s",
            with_month[name],
            with_month[name] / with_year[name],
        )
        for name in with_month
    ]


def measure(work: Path, lake: str, jobs: int) -> dict[str, float]:
    """Return the processor seconds of the applications, an evaluation, a tick without news, and the page's views."""
    result: dict[str, float] = {}
    for _ in range(2):
        hours = (hourly.END - hourly.HOUR, hourly.END)
        result["ingest"] = hourly.submit(Stage.INGEST, work, hourly.END, hours).cpu_s
        first, *others = hourly.PLANNING
        result["forecast, plan and report"] = hourly.submit(first, work, hourly.END, None, *others).cpu_s
    result |= time_ticks()
    views = {one.name: one.value / 1000 for one in page.measure(lake, hourly.END, jobs)}
    return result | {name: seconds for name, seconds in views.items() if "processor" in name}


def time_ticks() -> dict[str, float]:
    """Return the least processor seconds of an evaluation and of a tick without news, of jobs that nobody polls."""
    now = {"s": hourly.END.timestamp() + 30}
    ticker = build_ticker(load_settings, [hourly.CLUSTER], "benchmark", lambda: now["s"], is_rehearsal=True)
    seconds: dict[str, list[float]] = {"evaluation": [], "tick without news": []}
    for _ in range(TICKS):
        began = time.process_time()
        summary = ticker.tick()
        seconds["evaluation" if summary.is_evaluation else "tick without news"].append(time.process_time() - began)
        now["s"] += 60.0
    return {name: min(every[1:]) for name, every in seconds.items()}


def write_log(lake: str, jobs: int, end: datetime, months: int) -> None:
    """Append some months of the control log up to a time, a day at a time."""
    days = hourly.HISTORY_DAYS * months
    size = Size(jobs, OPERATORS, 24 * days, LOG_ROWS_PER_JOB_DAY * jobs * days, 0, has_late_job=False)
    some: list[dict[str, object]] = []
    for row in log_rows(size, end):
        if some and row["date"] != some[-1]["date"]:
            LakeTable(lake, CONTROL_LOG).append(some)
            some = []
        some.append(row)
    LakeTable(lake, CONTROL_LOG).append(some)


def add_months(jobs: int) -> None:
    """Put copies of the lake's month before it, and the control log of that time."""
    settings = load_settings()
    spark = start_session(settings, "benchmark")
    lake = Lake(spark, settings.paths.lake)
    month = lake.read(OBSERVATIONS).where(F.col("window_start") >= F.lit(hourly.END - MONTH))
    for back in range(1, MONTHS):
        start = F.col("window_start") - F.make_interval(days=F.lit(back * hourly.HISTORY_DAYS))
        earlier = month.withColumn("window_start", start)
        day, hour = date_hour_columns("window_start")
        rows = earlier.withColumn("date", day).withColumn("hour", hour).select(*OBSERVATIONS.columns)
        rows.repartition(8, "date").write.format("delta").mode("append").save(lake.path(OBSERVATIONS))
    spark.stop()
    write_log(settings.paths.lake, jobs, hourly.END - MONTH, MONTHS - 1)
