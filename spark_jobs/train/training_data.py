"""Training data: the rows of silver that models are learnt from."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator
from include.settings import Training
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from models.bundle.fleet_bundle import JobKey
from models.training.job_windows import KnownOperator
from spark_jobs.few_rows import read_few, read_newest_rows
from spark_jobs.lake import Lake, from_table, keep
from spark_jobs.row_conditions import is_chosen
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.day_windows import JOB, OPERATOR, pack_windows, read_days, select_windows
from spark_jobs.train.training_events import recent_events

RUNS_WITHIN = timedelta(days=1)
Made = TypeVar("Made")
_OF_GRAPHS = (*OPERATOR, "upstream", "max_parallelism", "vertex_id", "position")


@dataclass(frozen=True, slots=True)
class TrainingInputs:
    """Inputs of a training, cut to its look-back; events and graphs are few, and in the driver.

    Attributes:
        as_of: nothing at or after it is in here.
        observations: of :func:`read_by_day`.
        events: of :func:`spark_jobs.train.training_events.recent_events`.
        graphs: the operators of the last observed graph of each job of the look-back.
        hashes: of the content of events and of graphs.
        versions: Delta version of each table read.
    """

    as_of: datetime
    observations: DataFrame
    events: pd.DataFrame
    graphs: Sequence[Mapping[str, Any]]
    hashes: tuple[str, str]
    versions: dict[str, int | None]


def read_inputs(lake: Lake, as_of: datetime, training: Training, jobs: str | None = None) -> TrainingInputs:
    """Read what the models learn from; of the jobs that a regular expression matches, where there is one."""
    since, chosen = as_of - timedelta(days=training.lookback_days), is_chosen(jobs)
    observations = read_by_day(lake, read_renames(lake, since, as_of), as_of, training).where(chosen)
    events = recent_events(read_few(lake, RESCALES, since, as_of).where(chosen).toArrow(), as_of, training)
    before = as_of - timedelta(microseconds=1)
    newest = read_newest_rows(lake, JOB_GRAPHS, since, before, order=["observed_at"])
    graphs = from_table(lake.spark, JOB_GRAPHS, newest.select(_OF_GRAPHS)).where(chosen).toArrow()
    versions = {table.name: lake.version(table) for table in (OBSERVATIONS, RESCALES, JOB_GRAPHS)}
    known = events.to_pandas(maps_as_pydicts="strict")
    return TrainingInputs(
        as_of, observations, known, graphs.to_pylist(), (hash_rows(events), hash_rows(graphs)), versions
    )


def read_by_day(lake: Lake, renames: DataFrame | None, as_of: datetime, training: Training) -> DataFrame:
    """Return the undisturbed windows of the look-back, as a row of day_windows.pack_windows per job and day.

    Closed days come from silver.job_windows.  Windows are read one by one, and held in memory, of the first and the
    last day, which the look-back cuts, and of jobs whose operators were renamed.
    """
    first, last = (as_of - timedelta(days=training.lookback_days)).date(), as_of.date()
    in_time = follow_renames(lake.read(OBSERVATIONS), renames).where(_is_in_time(as_of, training))
    is_cut = F.col("date").isin(first, last)
    single, closed = in_time.where(is_cut), read_days(lake, first + timedelta(days=1), last - timedelta(days=1))
    if renames is not None:
        renamed = F.broadcast(renames.select(*JOB).distinct())
        single = single.unionByName(in_time.where(~is_cut).join(renamed, list(JOB), "left_semi"))
        closed = closed.join(renamed, list(JOB), "left_anti")
    return closed.unionByName(keep(pack_windows(select_windows(single))))


@dataclass(frozen=True, slots=True)
class DataSummary:
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


def hash_observations(observations: DataFrame, as_of: datetime) -> DataSummary:
    """Return what the observations are, by one pass over them: a row per job is summed up in the driver."""
    sums = [
        F.sum("rows").alias("rows"),
        F.size(F.array_distinct(F.flatten(F.collect_list("operators")))).alias("operators"),
        F.min("first_at").cast("string").alias("trained_from"),
        F.max("last_s").alias("last_s"),
        F.sum("hash_sum").alias("total"),
    ]
    rows = observations.groupBy(*JOB).agg(*sums).collect()
    lately_s = (as_of - RUNS_WITHIN).timestamp()
    count, total = sum(row["rows"] for row in rows), sum(int(row["total"]) for row in rows)
    return DataSummary(
        rows=count,
        operators=sum(row["operators"] for row in rows),
        trained_from=min((row["trained_from"] for row in rows), default=None),
        hash=_hash(f"{count} {total}"),
        running=frozenset((row["cluster"], row["job"]) for row in rows if row["last_s"] >= lately_s),
    )


def hash_rows(rows: pa.Table) -> str:
    """Return a hash of a small table's rows that does not depend on their order."""
    return _hash("\n".join(sorted(map(str, rows.to_pylist()))))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_in_time(as_of: datetime, training: Training) -> Column:
    """Return whether a window is of the look-back; days outside of it stay closed."""
    since, window = as_of - timedelta(days=training.lookback_days), F.col("window_start")
    is_of_its_days = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    return is_of_its_days & (window >= timestamp_column(since)) & (window < timestamp_column(as_of))


def placed_operators(graphs: Sequence[Mapping[str, Any]]) -> dict[JobKey, tuple[PlacedOperator, ...]]:
    """Return the operators of each job with their places, in the order of those."""
    ordered = sorted(graphs, key=lambda row: row["position"] or 0)
    placed = [
        PlacedOperator(row["operator"], row["vertex_id"] or "", row["position"] or 0, tuple(row["upstream"]))
        for row in ordered
    ]
    return _group_by_job(ordered, placed)


def known_operators(graphs: Sequence[Mapping[str, Any]]) -> dict[JobKey, tuple[KnownOperator, ...]]:
    """Return the operators of each job, by their names."""
    ordered = sorted(graphs, key=lambda row: row["operator"])
    known = [KnownOperator(row["operator"], tuple(row["upstream"]), row["max_parallelism"]) for row in ordered]
    return _group_by_job(ordered, known)


def _group_by_job(rows: Sequence[Mapping[str, Any]], made: Sequence[Made]) -> dict[JobKey, tuple[Made, ...]]:
    """Return what was made of the rows of each job, jobs in the order of their names."""
    result: dict[JobKey, list[Made]] = defaultdict(list)
    for row, one in zip(rows, made, strict=True):
        result[row["cluster"], row["job"]].append(one)
    return {job: tuple(result[job]) for job in sorted(result)}
