"""Training data: the rows of silver that models are learnt from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator
from include.settings import Training
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from spark_jobs.few_rows import read_few, read_newest
from spark_jobs.lake import Lake, planned_once, rows_of
from spark_jobs.one_job import local_frame
from spark_jobs.plan_inputs.chosen_jobs import is_chosen
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.day_windows import JOB, OPERATOR, pack_windows, read_days, select_windows
from spark_jobs.train.training_events import recent_events

RUNS_WITHIN = timedelta(days=1)
_WHOLE = "decimal(38,0)"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a training, cut to its look-back.

    Windows that are read one by one are held in memory until the caller unpersists them; events and graphs are few, and
    in the driver.

    Attributes:
        as_of: nothing at or after it is in here.
        observations: of :func:`training_observations`, or of :func:`read_by_day` where there are many.
        held: those of the observations that are held in memory.
        events: of :func:`spark_jobs.train.training_events.recent_events`.
        graphs: the last observed graph of each job of the look-back, rows of :func:`select_operators`.
        hashes: of the content of events and of graphs.
        versions: Delta version of each table read.
    """

    as_of: datetime
    observations: DataFrame
    held: DataFrame
    events: pd.DataFrame
    graphs: Sequence[Mapping[str, Any]]
    hashes: tuple[str, str]
    versions: dict[str, int | None]

    def list_graphs(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return ``operator, upstream`` of the operators of each job."""
        result: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.graphs:
            result[row["cluster"], row["job"]].append({"operator": row["operator"], "upstream": row["upstream"]})
        return dict(result)

    def unpersist(self) -> None:
        """Give their memory back."""
        self.held.unpersist()


def read_inputs(lake: Lake, as_of: datetime, training: Training, jobs: str | None = None) -> Inputs:
    """Read what the models learn from; of the jobs that a regular expression matches, where there is one."""
    since = as_of - timedelta(days=training.lookback_days)
    renames, chosen = read_renames(lake, since, as_of), is_chosen(jobs)
    followed = follow_renames(lake.read(OBSERVATIONS).where(chosen), renames)
    if jobs is None:
        observations, held = read_by_day(lake, followed, renames, as_of, training)
    else:
        observations = held = training_observations(followed, as_of, training).persist()
    with planned_once(lake.spark):
        rescales = read_few(lake, RESCALES, since, as_of).where(chosen)
        recent = recent_events(rescales, as_of, training)
        events = local_frame(recent, recent.toArrow())
    before = as_of - timedelta(microseconds=1)
    graphs = select_operators(read_newest(lake, JOB_GRAPHS, since, before, order=["observed_at"]).where(chosen))
    versions = {table.name: lake.version(table) for table in (OBSERVATIONS, RESCALES, JOB_GRAPHS)}
    return Inputs(
        as_of,
        observations,
        held,
        events.toPandas(),
        [row.asDict() for row in graphs.collect()],
        (content_hash(events), content_hash(graphs)),
        versions,
    )


def training_observations(observations: DataFrame, as_of: datetime, training: Training) -> DataFrame:
    """Undisturbed windows of the look-back, none at or after ``as_of``."""
    return select_windows(observations.where(_is_in_time(as_of, training))).drop("date")


def read_by_day(
    lake: Lake, followed: DataFrame, renames: DataFrame | None, as_of: datetime, training: Training
) -> tuple[DataFrame, DataFrame]:
    """Return the same windows as :func:`training_observations`, as a row of day_windows.pack_windows per job and day.

    And those of them that are held in memory.

    Closed days come from silver.job_windows.  Windows are read one by one of the first and the last day, which the
    look-back cuts, and of jobs whose operators were renamed.

    Args:
        lake: of the run.
        followed: rows of silver.observations under the present names.
        renames: of job_inputs.renames.
        as_of: nothing at or after it is read.
        training: the settings.
    """
    first, last = (as_of - timedelta(days=training.lookback_days)).date(), as_of.date()
    in_time, is_cut = followed.where(_is_in_time(as_of, training)), F.col("date").isin(first, last)
    single, closed = in_time.where(is_cut), read_days(lake, first + timedelta(days=1), last - timedelta(days=1))
    if renames is not None:
        renamed = F.broadcast(renames.select(*JOB).distinct())
        single = single.unionByName(in_time.where(~is_cut).join(renamed, list(JOB), "left_semi"))
        closed = closed.join(renamed, list(JOB), "left_anti")
    held = pack_windows(select_windows(single)).persist()
    return closed.unionByName(held), held


@dataclass(frozen=True, slots=True)
class Content:
    """What the observations of a training are.

    Attributes:
        rows: how many.
        operators: of how many operators.
        trained_from: the first window, as Spark writes a timestamp; None without any.
        hash: of the content, which does not depend on order or files.
        running: (cluster, job) of the jobs with a window in the last day.
    """

    rows: int
    operators: int
    trained_from: str | None
    hash: str
    running: frozenset[tuple[str, str]]


def hash_observations(observations: DataFrame, as_of: datetime) -> Content:
    """Return what the observations are, by one pass over them: a row per job is summed up in the driver."""
    by_job = observations.groupBy(*JOB).agg(*(_sums_of_days() if is_by_day(observations) else _sums(observations)))
    rows = by_job.collect()
    lately_s = (as_of - RUNS_WITHIN).timestamp()
    count = sum(row["rows"] for row in rows)
    return Content(
        rows=count,
        operators=sum(row["operators"] for row in rows),
        trained_from=min((row["trained_from"] for row in rows), default=None),
        hash=_hash_sum(observations.sparkSession, count, sum(int(row["total"]) for row in rows)),
        running=frozenset((row["cluster"], row["job"]) for row in rows if row["last_s"] >= lately_s),
    )


def is_by_day(observations: DataFrame) -> bool:
    """Whether observations are rows per job and day: of :func:`read_by_day`."""
    return "windows" in observations.columns


def _sums(observations: DataFrame) -> list[Column]:
    return [
        F.count(F.lit(1)).alias("rows"),
        F.size(F.collect_set("operator")).alias("operators"),
        F.min("window_start").cast("string").alias("trained_from"),
        F.max("start_s").alias("last_s"),
        F.sum(F.xxhash64(*observations.columns).cast(_WHOLE)).alias("total"),
    ]


def _sums_of_days() -> list[Column]:
    """Return the same of rows per job and day."""
    return [
        F.sum("rows").alias("rows"),
        F.size(F.array_distinct(F.flatten(F.collect_list("operators")))).alias("operators"),
        F.min("first_at").cast("string").alias("trained_from"),
        F.max("last_s").alias("last_s"),
        F.sum("hash_sum").alias("total"),
    ]


def content_hash(rows: DataFrame) -> str:
    """Return a hash of a small table's rows, a local frame, that does not depend on their order."""
    row = F.to_json(F.struct(*sorted(rows.columns)))  # a map has no hash of its own
    hashes = [int(one["hash"]) for one in rows.select(F.xxhash64(row).alias("hash")).collect()]
    return _hash_sum(rows.sparkSession, len(hashes), sum(hashes))


def _hash_sum(spark: SparkSession, count: int, total: int) -> str:
    """Return the hash of a number of rows and the sum of their hashes, which Spark works out without a job."""
    summed = F.lit(str(total)).cast(_WHOLE) if count else F.lit(None).cast(_WHOLE)
    one = rows_of(spark, {"count": "BIGINT"}, [{"count": count}])
    (row,) = one.select(F.hex(F.xxhash64("count", summed)).alias("hash")).collect()
    return str(row["hash"])


def select_operators(graphs: DataFrame) -> DataFrame:
    """Return what a training reads of graphs, one row per operator."""
    return graphs.select(*OPERATOR, "upstream", "max_parallelism", "vertex_id", "position")


def _is_in_time(as_of: datetime, training: Training) -> Column:
    """Return whether a window is of the look-back; days outside of it stay closed."""
    since, window = as_of - timedelta(days=training.lookback_days), F.col("window_start")
    is_of_its_days = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    return is_of_its_days & (window >= timestamp_column(since)) & (window < timestamp_column(as_of))


def placed_operators(graphs: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[PlacedOperator, ...]]:
    """Return the operators of each job of :func:`select_operators` with their places."""
    result: dict[tuple[str, str], list[PlacedOperator]] = defaultdict(list)
    for row in sorted(graphs, key=lambda row: (row["cluster"], row["job"], row["position"] or 0)):
        place = PlacedOperator(row["operator"], row["vertex_id"] or "", row["position"] or 0, tuple(row["upstream"]))
        result[row["cluster"], row["job"]].append(place)
    return {job: tuple(operators) for job, operators in result.items()}
