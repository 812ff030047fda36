"""How many Spark jobs a stage starts, and where: ``python -m benchmarks.pipeline.spark_jobs`` lists them by line.

A Spark job costs its planning and its tasks' start however few rows it has: on a small fleet that is most of a stage's
processor time. Two hours of a small fleet are ingested one after the other, and the second once more.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import spark_jobs
from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, END, HOUR, environment
from benchmarks.processes import TreeSeconds
from include.settings import Settings, load_settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from lab.commands.history import HistoryRequest, write_history
from spark_jobs.ingest import stage as ingest
from spark_jobs.session import start_session

_ACTIONS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (DataFrame, ("localCheckpoint", "collect", "toArrow", "isEmpty", "first", "count", "toPandas")),
    (DataFrameWriter, ("save",)),
    (DataFrameReader, ("load",)),
)
_DESCRIPTION = "spark.job.description"
_STAGES = Path(spark_jobs.__file__).resolve().parent


def count_jobs(spark: SparkSession) -> int:
    """Return how many jobs this application has begun."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def list_jobs(spark: SparkSession, first: int) -> Counter[str]:
    """Return the number of jobs by what they are for, of those from a number on."""
    context: Any = spark.sparkContext
    jobs = context._jsc.sc().statusStore().jobsList(None)
    every = [jobs.apply(place) for place in range(jobs.size())]
    return Counter(_describe(one) for one in every if one.jobId() >= first)


def _describe(job: Any) -> str:
    described = job.description()
    name = str(described.get()) if described.isDefined() else str(job.name())
    return f"{name} (broadcast)" if "broadcast" in str(job.jobTags()) else name


@contextmanager
def described_jobs(spark: SparkSession) -> Iterator[None]:
    """Jobs inside bear the line of the project that asked for them as their description."""
    before = {(kind, name): getattr(kind, name) for kind, names in _ACTIONS for name in names}
    for (kind, name), action in before.items():
        setattr(kind, name, _describing(spark, action))
    try:
        yield
    finally:
        for (kind, name), action in before.items():
            setattr(kind, name, action)


def _describing(spark: SparkSession, action: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(action)
    def run(*args: Any, **options: Any) -> Any:
        context: Any = spark.sparkContext
        if context.getLocalProperty(_DESCRIPTION):  # one action is made of others
            return action(*args, **options)
        context.setLocalProperty(_DESCRIPTION, f"{action.__name__} {_find_line()}{_find_path(args)}")
        try:
            return action(*args, **options)
        finally:
            context.setLocalProperty(_DESCRIPTION, None)

    return run


def _find_line() -> str:
    """Return the two innermost lines of the project's stages that are being run."""
    frame: FrameType | None = sys._getframe(2)
    lines: list[str] = []
    while frame is not None and len(lines) < 2:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_STAGES):
            lines.append(f"{path.stem}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(lines)


def _find_path(args: tuple[Any, ...]) -> str:
    paths = [one for one in args if isinstance(one, str) and "/" in one]
    return f" {Path(paths[0]).parent.name}.{Path(paths[0]).name}" if paths else ""


def ingest_hour(spark: SparkSession, settings: Settings, start: datetime) -> Counter[str]:
    """Ingest an hour; returns its Spark jobs by line."""
    first = count_jobs(spark)
    ingest.run(spark, settings, StageRequest(Stage.INGEST, start + HOUR, start, start + HOUR))
    result = list_jobs(spark, first)
    if result.total() != count_jobs(spark) - first:
        raise RuntimeError(f"Spark has listed {result.total()} of {count_jobs(spark) - first} jobs")
    return result


def run(work: Path, jobs: int = 3, operators: int = 3) -> list[Measurement]:
    """Count the jobs and the processor seconds of ingestions of an hour, and print them.

    Args:
        work: an empty directory; everything is written below it.
        jobs: size of the fleet.
        operators: of each job.
    """
    with environment(work):
        write_history(HistoryRequest(2, END, work / "raw", CLUSTER, scale_jobs=jobs, operators=operators, window_s=60))
        settings = load_settings()
        spark = start_session(settings, "spark-jobs")
        result: list[Measurement] = []
        seconds = TreeSeconds(psutil.Process())
        with described_jobs(spark):
            for name, start in (("first", END - 2 * HOUR), ("next", END - HOUR), ("same again", END - HOUR)):
                begun_s = seconds.sample_s()
                counted = ingest_hour(spark, settings, start)
                cpu_s = seconds.sample_s() - begun_s
                result.append(Measurement(f"Spark jobs, ingest, {name} hour", counted.total(), "jobs"))
                result.append(Measurement(f"processor time, ingest, {name} hour", cpu_s, "s"))
                print(f"\n{name} hour: {counted.total()} Spark jobs, {cpu_s:.1f} CPU s")
                for place, number in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
                    print(f"{number:4}  {place}")
        spark.stop()
    return result


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tidewise-spark-jobs-") as folder:
        run(Path(folder))
