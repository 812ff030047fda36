"""Training data: the rows of silver that models are learnt from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator
from include.settings import Training
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from spark_jobs.few_rows import keep_few, read_few, read_newest
from spark_jobs.job_inputs.chosen_jobs import is_chosen
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.job_inputs.source_series import is_demand
from spark_jobs.lake import Lake, planned_once, rows_of
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.training_events import recent_events

JOB = ("cluster", "job")
OPERATOR = (*JOB, "operator")
RUNS_WITHIN = timedelta(days=1)
_WHOLE = "decimal(38,0)"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a training, cut to its look-back.

    The observations stay in memory until the caller unpersists them; events and graphs are few, and local frames.

    Attributes:
        as_of: nothing at or after it is in here.
        observations: of :func:`training_observations`.
        events: of :func:`spark_jobs.train.training_events.recent_events`.
        graphs: the last observed graph of each job of the look-back, of :func:`select_operators`.
        versions: Delta version of each table read.
    """

    as_of: datetime
    observations: DataFrame
    events: DataFrame
    graphs: DataFrame
    versions: dict[str, int | None]

    def list_graphs(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return ``operator, upstream`` of the operators of each job."""
        result: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.graphs.collect():
            result[row["cluster"], row["job"]].append({"operator": row["operator"], "upstream": row["upstream"]})
        return dict(result)

    def unpersist(self) -> None:
        """Give their memory back."""
        self.observations.unpersist()


def read_inputs(lake: Lake, as_of: datetime, training: Training, jobs: str | None = None) -> Inputs:
    """Read what the models learn from; of the jobs that a regular expression matches, where there is one."""
    renames, chosen = read_renames(lake, as_of - timedelta(days=training.lookback_days), as_of), is_chosen(jobs)
    followed = follow_renames(lake.read(OBSERVATIONS).where(chosen), renames)
    observations = training_observations(followed, as_of, training).persist()
    since = as_of - timedelta(days=training.lookback_days)
    with planned_once(lake.spark):
        rescales = read_few(lake, RESCALES, since, as_of).where(chosen)
        events = keep_few(recent_events(rescales, as_of, training), is_small=True)
    before = as_of - timedelta(microseconds=1)
    graphs = select_operators(read_newest(lake, JOB_GRAPHS, since, before, order=["observed_at"]).where(chosen))
    versions = {table.name: lake.version(table) for table in (OBSERVATIONS, RESCALES, JOB_GRAPHS)}
    return Inputs(as_of, observations, events, graphs, versions)


def training_observations(observations: DataFrame, as_of: datetime, training: Training) -> DataFrame:
    """Undisturbed windows of the look-back, none at or after ``as_of``."""
    since = as_of - timedelta(days=training.lookback_days)
    window = F.col("window_start")
    in_time = (window >= timestamp_column(since)) & (window < timestamp_column(as_of))
    undisturbed = ~F.coalesce(F.col("disturbed"), F.lit(False))
    return observations.where(
        _dates(as_of, training) & in_time & undisturbed & F.col("parallelism").isNotNull()
    ).select(
        *OPERATOR,
        "parallelism",
        "window_start",
        F.unix_timestamp(window).alias("start_s"),
        "window_s",
        "is_source",
        F.col("observed_processing_rate_per_s").alias("rate_per_s"),
        F.col("observed_output_rate_per_s").alias("output_per_s"),
        F.col("true_processing_rate_per_s").alias("true_rate_per_s"),
        "busy_share",
        "busy_share_max",
        "backpressured_share",
        "latency_ms",
        is_demand().alias("is_demand"),
    )


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
    by_job = observations.groupBy(*JOB).agg(
        F.count(F.lit(1)).alias("rows"),
        F.size(F.collect_set("operator")).alias("operators"),
        F.min("window_start").cast("string").alias("trained_from"),
        F.max("start_s").alias("last_s"),
        F.sum(F.xxhash64(*observations.columns).cast(_WHOLE)).alias("total"),
    )
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


def _dates(as_of: datetime, training: Training) -> Column:
    """Return the filter on the partition column that keeps the days outside the look-back closed."""
    since = as_of - timedelta(days=training.lookback_days)
    return F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))


def placed_operators(graphs: DataFrame) -> dict[tuple[str, str], tuple[PlacedOperator, ...]]:
    """Return the operators of each job of :func:`select_operators` with their places."""
    result: dict[tuple[str, str], list[PlacedOperator]] = defaultdict(list)
    for row in sorted(graphs.collect(), key=lambda row: (row["cluster"], row["job"], row["position"] or 0)):
        place = PlacedOperator(row["operator"], row["vertex_id"] or "", row["position"] or 0, tuple(row["upstream"]))
        result[row["cluster"], row["job"]].append(place)
    return {job: tuple(operators) for job, operators in result.items()}
