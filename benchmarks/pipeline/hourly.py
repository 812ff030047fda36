"""One hourly pass of a large fleet: the ``spark-submit`` application that the DAG starts.

It ingests the hour, forecasts, plans and reports. ``python -m benchmarks.pipeline.hour_applications`` measures the same
stages in an application each beside it.

Set-up, not timed: two hours of raw payloads of 1,000 jobs x 8 operators polled once a minute, 28 days of their sources'
rates in ``silver.observations``, the fleet trained, and the first of the two hours: ingested, forecast and planned.
Each round begins with a copy of what these leave.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measurement import Measurement
from benchmarks.processes import Usage, measure
from include.settings import load_settings
from include.spark.code_zip import build_package
from include.spark.submission import prepare_submission
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import OBSERVATIONS
from lab.commands.history import HistoryRequest, write_history
from lab.commands.spark_application import form_argv
from spark_jobs.lake import Lake
from spark_jobs.session import start_session

END = datetime(2026, 11, 20, 18, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLUSTER = "fleet"
HISTORY_DAYS = 28
BIN_S = 300
MASTER = "local[2]"
GOAL_S = 90.0
PLANNING = (Stage.FORECAST, Stage.PLAN, Stage.REPORT)
HOURLY = (Stage.INGEST, *PLANNING)
"""Stages of the application."""


@contextmanager
def environment(work: Path) -> Iterator[None]:
    """Point every location of the settings below ``work``, one-minute windows for the fleet's cluster."""
    values = {
        "TIDEWISE__PATHS__LAKE": str(work / "lake"),
        "TIDEWISE__PATHS__RAW": str(work / "raw"),
        "TIDEWISE__PATHS__OUT": str(work / "out"),
        "TIDEWISE__MLFLOW__TRACKING_URI": f"sqlite:///{work}/mlflow.db",
        "TIDEWISE__MLFLOW__ARTIFACT_ROOT": str(work / "mlartifacts"),
        f"TIDEWISE__CLUSTERS__{CLUSTER}__WINDOW_S": "60",
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def source_history(spark: SparkSession, sources: DataFrame, until: datetime) -> DataFrame:
    """Return ``HISTORY_DAYS`` of five-minute observations of every source: a day and a week wave with noise."""
    begin = int((until - timedelta(days=HISTORY_DAYS)).timestamp())
    windows = spark.range(begin, int(until.timestamp()), BIN_S, numPartitions=8).select(F.col("id").alias("epoch_s"))
    level = 2e4 + F.abs(F.hash("job")) % 80_000
    day = F.sin(2 * F.pi() * (F.col("epoch_s") % 86_400) / 86_400)
    week = F.sin(2 * F.pi() * (F.col("epoch_s") % 604_800) / 604_800)
    noise = F.randn(seed=7) * 0.03
    rate = level * (1 + 0.35 * day + 0.1 * week + noise)
    timestamp = F.timestamp_seconds("epoch_s")
    known = {
        "window_start": timestamp,
        "window_s": F.lit(BIN_S),
        "is_source": F.lit(True),
        "observed_processing_rate_per_s": rate,
        "target_data_rate_per_s": rate,
        "samples": F.lit(1),
        "disturbed": F.lit(False),
        "date": F.to_date(timestamp),
        "hour": F.hour(timestamp),
    }
    retained = ("cluster", "job", "job_id", "operator", "vertex_id", "parallelism")
    rows = windows.crossJoin(F.broadcast(sources.select(*retained)))
    columns = [
        (known[name] if name in known else F.col(name) if name in retained else F.lit(None)).cast(kind).alias(name)
        for name, kind in OBSERVATIONS.columns.items()
    ]
    return rows.select(*columns)


def submit(
    stage: Stage,
    work: Path,
    as_of: datetime,
    interval: tuple[datetime, datetime] | None = None,
    *others: Stage,
    master: str = MASTER,
    code: Path | None = None,
) -> Usage:
    """Run a stage, and others after it, as one process and measure it; with ``code``, those of another checkout."""
    start, end = interval or (None, None)
    requests = [StageRequest(one, as_of, start, end) for one in (stage, *others)]
    submission = prepare_submission(load_settings(), master)
    if code is not None:
        script, package = code / "spark_jobs" / "launch.py", build_package(code, work / "tidewise.zip")
        submission = replace(submission, application=str(script), package=str(package))
    command = submission.command(form_argv(requests))
    # Elsewhere than in a checkout: workers of Python import what lies in the working directory before the package.
    return measure(command, submission.environment, work / "logs" / f"{stage}-{as_of:%H}.log", work)


def write_fleet(raw: Path, jobs: int, operators: int) -> None:
    """Write two hours of one cluster."""
    write_history(HistoryRequest(2, END, raw, CLUSTER, scale_jobs=jobs, operators=operators, window_s=60))


def prepare(
    work: Path, jobs: int, operators: int, write: Callable[[Path, int, int], None] = write_fleet, **how: Any
) -> None:
    """Make everything that the pass finds when it begins; a later call goes on after the last step that had ended.

    ``how`` goes to :func:`submit`.
    """
    steps: dict[str, Callable[[], object]] = {
        "write": lambda: write(work / "raw", jobs, operators),
        "ingest": lambda: submit(Stage.INGEST, work, END - HOUR, (END - 2 * HOUR, END - HOUR), **how),
        "add weeks": add_weeks,
        "train": lambda: submit(Stage.TRAIN, work, END - HOUR, **how),
        "plan": lambda: submit(PLANNING[0], work, END - HOUR, None, *PLANNING[1:], **how),
    }
    (work / "prepared").mkdir(parents=True, exist_ok=True)
    for name, step in steps.items():
        if not (done := work / "prepared" / name).exists():
            step()
            done.touch()


def add_weeks() -> None:
    """Add the weeks of every source before the hours that were ingested, which training and forecasts read."""
    settings = load_settings()
    spark = start_session(settings, "benchmark")
    lake = Lake(spark, settings.paths.lake)
    newest = lake.read(OBSERVATIONS).where("is_source").dropDuplicates(["cluster", "job", "operator"])
    rows = source_history(spark, newest, END - 2 * HOUR).repartition(8, "date")
    rows.write.format("delta").mode("append").save(lake.path(OBSERVATIONS))
    spark.stop()


def run_pass(work: Path, *applications: Sequence[Stage]) -> dict[str, float]:
    """Run one pass over the second hour; returns seconds by stage, and ``pass_s, cpu_s, peak_gib``."""
    usages = [submit(one[0], work, END, (END - HOUR, END), *one[1:]) for one in applications or (HOURLY,)]
    summaries = {stage: work / "out" / "stages" / f"{stage}.json" for stage in HOURLY}
    return {
        **{str(stage): json.loads(file.read_text())["seconds"] for stage, file in summaries.items()},
        "pass_s": sum(usage.seconds for usage in usages),
        "cpu_s": sum(usage.cpu_s for usage in usages),
        "peak_gib": max(usage.peak_bytes for usage in usages) / 2**30,
    }


def run(work: Path, jobs: int = 1_000, operators: int = 8, rounds: int = 3) -> list[Measurement]:
    """Measure some passes over the same hour, and how far they lie apart.

    Args:
        work: an empty directory; everything is written below it.
        jobs: size of the fleet.
        operators: of each job.
        rounds: how many passes.
    """
    passes = []
    with environment(work):
        prepare(work, jobs, operators)
        (work / "lake").rename(work / "before")
        for _ in range(rounds):
            shutil.rmtree(work / "lake", ignore_errors=True)
            shutil.copytree(work / "before", work / "lake")
            passes.append(run_pass(work))
    size = f"{jobs:,} jobs x {operators} operators x 60 windows"
    result = []
    for name in passes[0]:
        values = [one[name] for one in passes]
        unit = {"cpu_s": "CPU s", "peak_gib": "GiB"}.get(name, "s")
        of_what = {"pass_s": "pass", "cpu_s": "pass", "peak_gib": "pass peak memory"}.get(name, name)
        middle = median(values)
        known = {"reference": GOAL_S, "ratio": GOAL_S / middle} if name == "pass_s" else {}
        spread = f"median of {rounds}, {min(values):.1f} to {max(values):.1f}"
        result.append(Measurement(f"hourly {of_what}, {size} ({spread})", middle, unit, **known))
    return result
