"""silver.observations: one row per job, operator and window, with the rates of :mod:`models.observing.windows`."""

from __future__ import annotations

from datetime import datetime

from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import OBSERVATIONS
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.job_history.job_shapes import JobShapes
from spark_jobs.job_history.samples import spread_over_hours
from spark_jobs.job_history.vertex_windows import read_windows
from spark_jobs.lake import date_hour_columns

_JOINED = ("parallelism", "disturbed", "date", "hour")
_WINDOW_COLUMNS = {name: kind for name, kind in OBSERVATIONS.columns.items() if name not in _JOINED}
_SOURCE_COLUMNS = {
    "cluster": "STRING",
    "job": "STRING",
    "job_id": "STRING",
    "operator": "STRING",
    "window_s": "INT",
    "observed_at": "TIMESTAMP",
    "since_last_s": "DOUBLE",
    "age_s": "DOUBLE",
    "target_per_s": "DOUBLE",
    "taken_total": "DOUBLE",
    "pending": "DOUBLE",
}


def measure_windows(samples: DataFrame, shapes: Broadcast[JobShapes], since: datetime | None = None) -> DataFrame:
    """Return what is measured of each window, and what sources of jobs that stopped showed: of these no window is told.

    Args:
        samples: from :func:`spark_jobs.job_history.samples.build_samples`.
        shapes: of the jobs.
        since: windows that began before are not wanted; None for no bound.
    """
    since_s = None if since is None else int(since.timestamp())
    return map_batches(
        samples,
        lambda batches, schema: read_windows(batches, schema, shapes.value, since_s),
        _WINDOW_COLUMNS | _SOURCE_COLUMNS,
    )


def build_observations(measured: DataFrame, changes: DataFrame, disturbed_windows: DataFrame) -> DataFrame:
    """Return the rows of silver.observations.

    Args:
        measured: from :func:`measure_windows`.
        changes: from :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
        disturbed_windows: ``cluster, job_id, window_start`` of the windows that a rescale or restart touches.
    """
    windows = measured.where("window_start IS NOT NULL").select(*_WINDOW_COLUMNS)
    with_parallelism = _with_parallelism(windows, changes).withColumn("disturbed", F.lit(False))
    dated = with_parallelism.select("*", *date_hour_columns("window_start"))
    return mark_disturbed(dated, disturbed_windows)


def mark_disturbed(observations: DataFrame, disturbed_windows: DataFrame) -> DataFrame:
    """Return rows of silver.observations, those of some windows marked as disturbed; those that were stay so.

    Args:
        observations: with its columns.
        disturbed_windows: ``cluster, job_id, window_start``.
    """
    named = F.broadcast(disturbed_windows.withColumn("is_disturbed", F.lit(True)))
    marked = observations.join(named, ["cluster", "job_id", "window_start"], "left")
    flag = F.col("disturbed") | F.coalesce("is_disturbed", F.lit(False))
    return marked.withColumn("disturbed", flag).select(*OBSERVATIONS.columns)


def select_source_samples(measured: DataFrame) -> DataFrame:
    """Return the samples of sources that show their backlog, with ``age_s`` (of the oldest record not through the job).

    It is null where it is not known, as is ``target_per_s``; ``taken_total`` (records since the job runs)
    and ``pending`` are as read, ``since_last_s`` is null for the first of a vertex.
    """
    return measured.where("window_start IS NULL").select(*_SOURCE_COLUMNS)


def _with_parallelism(windows: DataFrame, changes: DataFrame) -> DataFrame:
    """Add the parallelism in force at the end of each window (of the last period that began before it)."""
    periods = F.broadcast(spread_over_hours(changes, "window_hour"))
    ended = windows.withColumns(
        {
            "window_end": F.timestamp_seconds(F.unix_seconds("window_start") + F.col("window_s")),
            "window_hour": F.date_trunc("hour", "window_start"),
        }
    )
    keys = ("cluster", "job_id", "vertex_id", "window_hour")
    same_hour = [F.col(f"w.{key}") == F.col(f"p.{key}") for key in keys]
    in_force = (F.col("valid_from") < F.col("window_end")) & (F.col("valid_to") >= F.col("window_end"))
    joined = ended.alias("w").join(periods.alias("p"), [*same_hour, in_force], "left")
    return joined.select("w.*", "p.parallelism")
