"""Watch stage: raw files of the last minutes -> the reactive controller's decision on every job, in ``gold.looks``.

The plan says what should go out when; the controller says what does. The apply stage of the same time sends it.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.control.watching import WATCHED, remove_looked, write_looked
from include.settings import Settings
from include.stages import StageRequest
from include.tables import LOOKS, PARALLELISM
from include.version import code_version
from spark_jobs.job_inputs.newest_rows import JOB
from spark_jobs.lake import Lake
from spark_jobs.model_store import champion
from spark_jobs.timestamps import as_of_slice, timestamp_column, timestamp_literal
from spark_jobs.watch.inputs import REMEMBERED, job_views
from spark_jobs.watch.job import ROW_SCHEMA, WatchTask, watcher


def look_rows(rows: DataFrame, task: WatchTask) -> DataFrame:
    """Return the rows of gold.looks."""
    made: dict[str, Column] = {
        "as_of": timestamp_column(task.as_of),
        "apply_at": F.timestamp_seconds("apply_at_s"),
        "valid_until": F.timestamp_seconds("valid_until_s"),
        "parallelism_from": F.from_json("parallelism_from", PARALLELISM),
        "parallelism_to": F.from_json("parallelism_to", PARALLELISM),
        "observations_until": F.timestamp_seconds("observations_until_s"),
        "plan_as_of": F.timestamp_seconds("plan_as_of_s"),
        "policy": F.lit(WATCHED),
        "model_version": F.lit(task.bundle.value.model_version if task.bundle else None).cast("string"),
        "code_version": F.lit(code_version()),
        "date": F.lit(task.as_of.date()),
    }
    return rows.withColumns(made).select(*LOOKS.columns)


def own_slice(as_of: datetime) -> str:
    """Return the slice of gold.looks that an evaluation replaces: its own rows, and those that are too old.

    A row without a step is kept for as long as its memory is of use; the others stay.
    """
    forget_enlargement = timestamp_literal(as_of - REMEMBERED)
    return f"({as_of_slice(as_of)}) OR (decision = 'wait' AND as_of < {forget_enlargement})"


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Evaluate all jobs of the planner as of ``request.as_of``; the same input gives the same rows."""
    lake, as_of = Lake(spark, settings.paths.lake), request.as_of
    bundle = champion(settings)
    task = WatchTask(settings, as_of, spark.sparkContext.broadcast(bundle) if bundle else None)
    views = job_views(lake, settings, as_of)
    rows = views.groupBy(*JOB).applyInPandas(watcher(task), ROW_SCHEMA).localCheckpoint()  # type: ignore[arg-type]
    remove_looked(settings)  # if this run is killed before it writes the new one, the apply stage reads the table
    lake.replace(LOOKS, look_rows(rows, task), own_slice(as_of))
    counted = rows.groupBy("decision", "seen").count().collect()
    found: Counter[str] = Counter()
    for row in counted:
        found.update({row["decision"]: row["count"], "seen": row["count"] * row["seen"]})
    write_looked(settings, as_of, found["net"] + found["due"])
    jobs = sum(int(row["count"]) for row in counted)
    return {"jobs": jobs, **{name: found[name] for name in ("seen", "net", "due", "wait")}}
