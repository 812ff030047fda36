"""Training data: rows of silver, reduced in Spark to the inputs of a fit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator
from include.settings import Training
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from models.capacity.kinds import kind_of
from models.latency import BINS
from spark_jobs.job_inputs.busy_windows import with_busiest, with_trusted
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.job_inputs.source_series import is_demand
from spark_jobs.lake import Lake
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.training_events import recent_events, with_capacity_after

JOB = ("cluster", "job")
OPERATOR = (*JOB, "operator")
POINT = (*OPERATOR, "parallelism")
RECENT_HELD = 20  # held-back observations per (operator, parallelism) on which models are scored
RECENT_HELD_WINDOWS = 200  # per job, for latency
RUNS_WITHIN = timedelta(days=1)
_BUCKETS = 10_000
EVEN_LOAD = 1.1  # busy share of the busiest subtask over the mean: chance and rounding of few samples


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a training, cut to its look-back; they stay in memory until the caller unpersists them.

    Attributes:
        as_of: nothing at or after it is in here.
        observations: of :func:`training_observations`.
        events: of :func:`spark_jobs.train.training_events.recent_events`, with the capacity after them.
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
    # Both are small and read by a dozen queries: kept, they take a third off a training's processor time.
    events = with_capacity_after(recent_events(lake.read(RESCALES), as_of, training), observations).persist()
    graphs = latest_graphs(lake.read(JOB_GRAPHS), as_of, training).persist()
    versions = {table.name: lake.version(table) for table in (OBSERVATIONS, RESCALES, JOB_GRAPHS)}
    return Inputs(as_of, observations, events, graphs, versions)


def running_jobs(inputs: Inputs) -> set[tuple[str, str]]:
    """Return (cluster, job) of the jobs with a window in the last day."""
    lately = F.col("window_start") >= timestamp_column(inputs.as_of - RUNS_WITHIN)
    rows = inputs.observations.where(lately).select(*JOB).distinct().collect()
    return {(str(row["cluster"]), str(row["job"])) for row in rows}


def training_observations(observations: DataFrame, as_of: datetime, training: Training) -> DataFrame:
    """Undisturbed windows of the look-back, none at or after ``as_of``, marked held back or not.

    A window is held back by a hash of its job and time: the same ones for every training, so that a champion and its
    challenger are scored on windows that neither was trained on.
    """
    since = as_of - timedelta(days=training.lookback_days)
    window = F.col("window_start")
    in_time = (window >= timestamp_column(since)) & (window < timestamp_column(as_of))
    held = F.pmod(F.xxhash64(*JOB, F.unix_timestamp(window)), F.lit(_BUCKETS)) < int(training.holdout_share * _BUCKETS)
    undisturbed = ~F.coalesce(F.col("disturbed"), F.lit(False))
    return observations.where(
        _dates(as_of, training) & in_time & undisturbed & F.col("parallelism").isNotNull()
    ).select(
        *POINT,
        "window_start",
        "window_s",
        "is_source",
        F.col("observed_processing_rate_per_s").alias("rate_per_s"),
        F.col("observed_output_rate_per_s").alias("output_per_s"),
        sustained_capacity().alias("capacity_per_s"),
        F.when(F.col("busy_share") > 1.0, F.lit(1.0)).otherwise(F.col("busy_share")).alias("busy_share"),
        "latency_ms",
        is_demand().alias("is_demand"),
        held.alias("held"),
    )


def sustained_capacity() -> Column:
    """Return the rate at which the busiest subtask would have no idle time left.

    Eq. 5 of DS2 divides by the mean busy share; where load is skewed the busiest subtask is full before, and holds the
    operator back.  Subtasks that differ by no more than :data:`EVEN_LOAD` are taken as evenly loaded.
    """
    skew = F.col("busy_share_max") / F.col("busy_share") / F.lit(EVEN_LOAD)
    skewed = F.when((F.col("busy_share") > 0) & (skew > 1.0), skew).otherwise(F.lit(1.0))
    return F.col("true_processing_rate_per_s") / skewed


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


def capacity_points(observations: DataFrame, training: Training) -> DataFrame:
    """The K most recent capacities per (operator, parallelism), in ascending order, of windows that are busy enough.

    ``busiest`` is the highest busy share there: how far they can be trusted.  ``idle`` marks an operator that is never
    busy: its own busiest windows are the best there is.
    """
    age = F.row_number().over(Window.partitionBy(*POINT).orderBy(F.col("window_start").desc()))
    recent = (
        with_idle(observations.where(~F.col("held")), training)
        .withColumn("age", age)
        .where(F.col("age") <= training.recent_per_parallelism)
    )
    points = recent.groupBy(*POINT).agg(
        F.sort_array(F.collect_list("capacity_per_s")).alias("capacities_per_s"),
        F.max("idle").alias("idle"),
        F.max("busiest").alias("busiest"),
    )
    largest = F.max("parallelism").over(Window.partitionBy(*JOB)).alias("largest")
    return points.select(*POINT, "capacities_per_s", "idle", "busiest", largest)


def with_idle(observations: DataFrame, training: Training) -> DataFrame:
    """Keep windows in which an operator is busy enough to show its capacity, and say which are of an idle operator.

    They are what :func:`capacity_points` learns from, with ``busiest`` of job_inputs.busy_windows: those above
    ``training.min_busy_share``, unless the operator is never busier, and of them the busiest of each parallelism.
    """
    usable = observations.where(
        (F.col("capacity_per_s") > 0) & (F.col("capacity_per_s") < F.lit(float("inf"))) & (F.col("busy_share") > 0)
    )
    busiest = F.max("busy_share").over(Window.partitionBy(*OPERATOR))
    idle = busiest < training.min_busy_share
    marked = usable.withColumn("idle", idle)
    return with_busiest(marked.where(F.col("idle") | (F.col("busy_share") >= training.min_busy_share)), POINT)


def scored_windows(observations: DataFrame, training: Training) -> DataFrame:
    """Return the windows of :func:`with_idle` on which models are judged and their intervals calibrated."""
    return with_trusted(with_idle(observations, training), OPERATOR)


def held_capacities(observations: DataFrame, training: Training) -> DataFrame:
    """Held-back capacities on which champion and challenger are scored: recent ones, ``idle`` or of busy operators."""
    age = F.row_number().over(Window.partitionBy(*POINT).orderBy(F.col("window_start").desc()))
    held = scored_windows(observations, training).where("held")
    recent = held.withColumn("age", age).where(F.col("age") <= RECENT_HELD)
    return recent.select(*POINT, "capacity_per_s", "idle")


def selectivities(observations: DataFrame) -> DataFrame:
    """Records out per record in, over all undisturbed windows; of a source per record that it takes in."""
    ratio = F.sum("output_per_s") / F.sum("rate_per_s")
    usable = observations.where((F.col("rate_per_s") > 0) & F.col("output_per_s").isNotNull() & ~F.col("held"))
    return usable.groupBy(*OPERATOR).agg(ratio.alias("selectivity")).select(*OPERATOR, "selectivity")


def source_shares(observations: DataFrame) -> DataFrame:
    """One row per job: mean rate of each source, so how load divides over them, and how long a window is.

    Windows in which a source was held up by backpressure do not tell its share, unless there are no others.
    """
    demanded = F.max("is_demand").over(Window.partitionBy(*OPERATOR))
    measured = observations.where("is_source AND rate_per_s > 0").withColumn("has_demand", demanded)
    rates = measured.where("is_demand OR NOT has_demand").groupBy(*OPERATOR)
    means = rates.agg(F.avg("rate_per_s").alias("mean"), F.max("window_s").alias("window_s"))
    shares = F.map_from_entries(F.collect_list(F.struct("operator", "mean"))).alias("source_rates")
    resolution = F.max("window_s").cast("double").alias("resolution_s")  # samples are at least one per window
    return means.groupBy(*JOB).agg(shares, resolution).select(*JOB, "source_rates", "resolution_s")


def job_windows(observations: DataFrame) -> DataFrame:
    """One row per (job, window) with a latency: utilisation of its busiest operator and the worst of its sources."""
    return (
        observations.groupBy(*JOB, "window_start", "held")
        .agg(F.max("busy_share").alias("utilisation"), F.max("latency_ms").alias("latency_ms"))
        .where(F.col("utilisation").isNotNull() & F.col("latency_ms").isNotNull())
        .select(*JOB, "window_start", "held", "utilisation", "latency_ms")
    )


def latency_bins(windows: DataFrame) -> DataFrame:
    """Median latency per job and bin of utilisation."""
    position = F.least(F.floor(F.col("utilisation") * BINS), F.lit(BINS - 1))
    return (
        windows.where(~F.col("held"))
        .groupBy(*JOB, position.alias("bin"))
        .agg(
            F.avg("utilisation").alias("utilisation"),
            F.median("latency_ms").alias("latency_ms"),
            F.count(F.lit(1)).alias("windows"),
        )
        .select(*JOB, "utilisation", "latency_ms", "windows")
    )


def held_windows(windows: DataFrame) -> DataFrame:
    """Held-back windows on which latency models are scored."""
    age = F.row_number().over(Window.partitionBy(*JOB).orderBy(F.col("window_start").desc()))
    recent = windows.where("held").withColumn("age", age).where(F.col("age") <= RECENT_HELD_WINDOWS)
    return recent.select(*JOB, "utilisation", "latency_ms")


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


def operator_kinds(graphs: DataFrame) -> DataFrame:
    """The kind of every operator of :func:`latest_graphs`, by which the fleet's operators are pooled."""
    edges = graphs.select(*JOB, F.explode("upstream").alias("operator"))
    fed = edges.groupBy(*OPERATOR).agg(F.count(F.lit(1)).cast("int").alias("feeds"))
    placed = graphs.join(fed, list(OPERATOR), "left")
    kind = F.udf(kind_of, "STRING")("operator", F.size("upstream"), F.coalesce("feeds", F.lit(0)))
    return placed.select(*OPERATOR, kind.alias("kind"))
