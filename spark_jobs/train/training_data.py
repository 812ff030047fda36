"""Training data: the rows of silver that models are learnt from."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator
from include.settings import Training
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.job_inputs.source_series import is_demand
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.training_events import recent_events

JOB = ("cluster", "job")
OPERATOR = (*JOB, "operator")
RUNS_WITHIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a training, cut to its look-back; they stay in memory until the caller unpersists them.

    Attributes:
        as_of: nothing at or after it is in here.
        observations: of :func:`training_observations`.
        events: of :func:`spark_jobs.train.training_events.recent_events`.
        graphs: of :func:`latest_graphs`.
        versions: Delta version of each table read.
    """

    as_of: datetime
    observations: DataFrame
    events: DataFrame
    graphs: DataFrame
    versions: dict[str, int | None]

    def unpersist(self) -> None:
        """Give their memory back."""
        for rows in (self.graphs, self.events, self.observations):
            rows.unpersist()


def read_inputs(lake: Lake, as_of: datetime, training: Training) -> Inputs:
    """Read what the models learn from."""
    renames = read_renames(lake, as_of - timedelta(days=training.lookback_days), as_of)
    observations = training_observations(follow_renames(lake.read(OBSERVATIONS), renames), as_of, training).persist()
    # Both are small and read by several queries: kept, they save a training's processor time.
    events = recent_events(lake.read(RESCALES), as_of, training).persist()
    graphs = latest_graphs(lake.read(JOB_GRAPHS), as_of, training).persist()
    versions = {table.name: lake.version(table) for table in (OBSERVATIONS, RESCALES, JOB_GRAPHS)}
    return Inputs(as_of, observations, events, graphs, versions)


def running_jobs(inputs: Inputs) -> set[tuple[str, str]]:
    """Return (cluster, job) of the jobs with a window in the last day."""
    lately = F.col("window_start") >= timestamp_column(inputs.as_of - RUNS_WITHIN)
    rows = inputs.observations.where(lately).select(*JOB).distinct().collect()
    return {(str(row["cluster"]), str(row["job"])) for row in rows}


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
        "latency_ms",
        is_demand().alias("is_demand"),
    )


def hash_observations(observations: DataFrame) -> DataFrame:
    """One row: count, operators, first window, and a hash of the content that does not depend on order or files."""
    total = F.sum(F.xxhash64(*observations.columns).cast("decimal(38,0)"))
    return observations.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_distinct(*OPERATOR).alias("operators"),
        F.min("window_start").cast("string").alias("trained_from"),
        F.hex(F.xxhash64(F.count(F.lit(1)), total)).alias("hash"),
    ).select("rows", "operators", "trained_from", "hash")


def content_hash(rows: DataFrame) -> str:
    """Return a hash of a small table's rows that does not depend on their order."""
    row = F.to_json(F.struct(*sorted(rows.columns)))  # a map has no hash of its own
    total = F.sum(F.xxhash64(row).cast("decimal(38,0)"))
    result = rows.agg(F.hex(F.xxhash64(F.count(F.lit(1)), total)).alias("hash")).first()
    return str(result["hash"]) if result else ""


def latest_graphs(graphs: DataFrame, as_of: datetime, training: Training) -> DataFrame:
    """The last observed graph of each job of the look-back before ``as_of``, one row per operator."""
    newest = F.max("observed_at").over(Window.partitionBy(*JOB))
    known = graphs.where(_dates(as_of, training) & (F.col("observed_at") < timestamp_column(as_of)))
    current = known.withColumn("newest", newest).where(F.col("observed_at") == F.col("newest"))
    return current.select(*OPERATOR, "upstream", "max_parallelism", "vertex_id", "position")


def _dates(as_of: datetime, training: Training) -> Column:
    """Return the filter on the partition column that keeps the days outside the look-back closed."""
    since = as_of - timedelta(days=training.lookback_days)
    return F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))


def placed_operators(graphs: DataFrame) -> dict[tuple[str, str], tuple[PlacedOperator, ...]]:
    """Return the operators of each job of :func:`latest_graphs` with their places."""
    result: dict[tuple[str, str], list[PlacedOperator]] = defaultdict(list)
    for row in graphs.orderBy(*JOB, "position").collect():
        place = PlacedOperator(row["operator"], row["vertex_id"] or "", row["position"] or 0, tuple(row["upstream"]))
        result[row["cluster"], row["job"]].append(place)
    return {job: tuple(operators) for job, operators in result.items()}
