"""bronze.metrics as samples: one wide row per vertex and poll, with what was processed since the poll before.

Rates come from the differences of Flink's counters.  A counter that fell was restarted: what was counted across the
restart is unknown, so that difference is left out rather than guessed.  Old metrics given again are no measurement:
while a JobManager waits for a TaskManager that was lost, all metrics stand still, for ``web.timeout`` at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from include.settings import Cluster
from spark_jobs.job_history.operator_names import is_named_at

# column -> (metric, aggregation over the subtasks)
_METRICS = {
    "in_total": ("numRecordsIn", "sum"),
    "out_total": ("numRecordsOut", "sum"),
    "in_gauge_per_s": ("numRecordsInPerSecond", "sum"),
    "out_gauge_per_s": ("numRecordsOutPerSecond", "sum"),
    "busy_gauge_ms": ("busyTimeMsPerSecond", "avg"),
    "busy_gauge_max_ms": ("busyTimeMsPerSecond", "max"),
    "idle_gauge_ms": ("idleTimeMsPerSecond", "avg"),
    "backpressured_gauge_ms": ("backPressuredTimeMsPerSecond", "avg"),
    "busy_total_ms": ("accumulateBusyTimeMs", "avg"),
    "busy_max_total_ms": ("accumulateBusyTimeMs", "max"),
    "idle_total_ms": ("accumulateIdleTimeMs", "avg"),
    "backpressured_total_ms": ("accumulateBackPressuredTimeMs", "avg"),
    "pending": ("pendingRecords", "sum"),
}
# Ids first: when rows are sorted, most of them differ in the first bytes that are compared.
VERTEX_KEY = ("job_id", "vertex_id", "cluster", "job", "operator", "is_source", "window_s")
OPERATOR_METRIC = "pendingRecords"  # of the source operator, so Flink puts the operator's name in front
COUNTERS = ("in_total", "out_total", "busy_total_ms", "busy_max_total_ms", "idle_total_ms", "backpressured_total_ms")
GAUGES = tuple(column for column in _METRICS if column not in (*COUNTERS, "pending"))
# A difference over more than this many windows would smear one rate over a gap in the data.
LONGEST_GAP_WINDOWS = 2


def window_length_s(clusters: Mapping[str, Cluster]) -> Column:
    """Return the window length of the row's cluster; a cluster without settings has the default."""
    length = F.lit(Cluster().window_s)
    for name, cluster in sorted(clusters.items()):
        length = F.when(F.col("cluster") == name, F.lit(cluster.window_s)).otherwise(length)
    return length


def window_start(timestamp: str) -> Column:
    """Return the start of the window of ``window_s`` seconds in which a moment lies."""
    seconds = F.unix_seconds(timestamp)
    return F.timestamp_seconds(seconds - seconds % F.col("window_s"))


def source_or_named() -> Column:
    """Return ``is_source``; an operator that no plan tells of is known by the name Flink gives sources."""
    return F.coalesce("is_source", F.col("operator").startswith("Source: "))


def build_samples(metrics: DataFrame, operators: DataFrame, clusters: Mapping[str, Cluster]) -> DataFrame:
    """Return bronze rows as wide samples with the differences to the sample before.

    Args:
        metrics: rows of bronze.metrics.
        operators: ``cluster, job_id, vertex_id`` -> ``job, operator, is_source``, ``named_from`` to ``named_until``.
        clusters: the settings of the clusters, for the window length.

    Returns:
        Samples with ``d_<counter>`` and ``dt_s`` (null without a usable sample before), ``since_last_s`` (null for the
        first of a vertex), ``d_pending`` and the gauges, in the order of ``VERTEX_KEY`` and time, so that those of a
        window follow each other; ``is_resubmitted`` when the job has run under several ids, or its operator has.
    """
    # A reply without metrics (a vertex that is being deployed) is no measurement.
    given = metrics.where(F.size("metrics") > 0)
    keys = ["cluster", "job_id", "vertex_id"]
    several = _has_several("job_id", "cluster", "job") | _has_several("vertex_id", "cluster", "job", "operator")
    named = given.join(F.broadcast(operators.withColumn("is_resubmitted", several)), keys).where(
        is_named_at(F.col("observed_at"))
    )
    measured = named.select(*keys, "job", "operator", "is_source", "is_resubmitted", "observed_at", *_wide_columns())
    sized = measured.withColumn("window_s", window_length_s(clusters))
    dated = sized.withColumn("window_start", window_start("observed_at"))
    # One shuffle for all that follows: every later grouping of a stage holds (cluster, job, operator).
    placed = dated.repartition("cluster", "job", "operator")
    by_vertex = Window.partitionBy(*VERTEX_KEY).orderBy("window_start", "observed_at")
    # In the order that the next window needs, so that nothing is sorted twice.
    moved = _drop_stale(placed, by_vertex)
    before = F.lag(F.struct("observed_at", "pending", *COUNTERS)).over(by_vertex)
    return _with_differences(moved.withColumn("before", before)).drop("before", *(set(COUNTERS) - {"out_total"}))


def _has_several(column: str, *of: str) -> Column:
    each = Window.partitionBy(*of)
    return F.min(column).over(each) < F.max(column).over(each)


def select_source_samples(samples: DataFrame) -> DataFrame:
    """Return the samples of sources that show their backlog, with ``lag_s`` (of input) and ``target_per_s``.

    Both are null where no rate is known; ``out_total`` (records since the job runs) and ``pending`` are as read.
    """
    emitted = F.coalesce(F.when(F.col("dt_s") > 0, F.col("d_out_total") / F.col("dt_s")), "out_gauge_per_s")
    growth = F.when(F.col("dt_s") > 0, F.col("d_pending") / F.col("dt_s"))
    pending = F.col("pending")
    return samples.where("is_source AND pending IS NOT NULL").select(
        "cluster",
        "job",
        "job_id",
        "operator",
        "window_s",
        "observed_at",
        "since_last_s",
        F.when(pending == 0, F.lit(0.0)).when(emitted > 0, pending / emitted).alias("lag_s"),
        F.when(growth.isNotNull(), F.greatest(emitted + growth, F.lit(0.0))).alias("target_per_s"),
        "out_total",
        "pending",
    )


def _wide_columns() -> list[Column]:
    """Return each metric's aggregation: found by its name, a source's backlog by ``<operator>.<name>``."""
    columns = []
    for column, (metric, aggregation) in _METRICS.items():
        if metric == OPERATOR_METRIC:
            place = F.when(F.col("is_source"), _place_by_last_name(metric))
        else:
            place = F.array_position("metrics.id", metric).cast("INT") - 1
        columns.append(F.get("metrics", place)[aggregation].alias(column))  # null at -1
    return columns


def _place_by_last_name(metric: str) -> Column:
    """Return the place of the first metric whose id ends with a dot and this name, or is the name; -1 without one.

    By the ids as one text: a lambda over the array is not compiled, nor is the projection that holds it.
    """
    end = "\x1f"  # in no id
    text = F.concat(F.lit("."), F.array_join("metrics.id", f"{end}."), F.lit(end))
    before = F.substring_index(text, f".{metric}{end}", 1)
    return F.when(before == text, -1).otherwise(F.length(before) - F.length(F.replace(before, F.lit(end))))


def _drop_stale(samples: DataFrame, by_vertex: WindowSpec) -> DataFrame:
    """Leave out samples whose tasks have not aged since the one before; where Flink does not time them, none."""
    # The time that the tasks have run: it moves without load, too.
    ran_ms = F.col("busy_total_ms") + F.col("idle_total_ms") + F.col("backpressured_total_ms")
    is_same = F.coalesce(ran_ms == F.lag(ran_ms).over(by_vertex), F.lit(False))
    return samples.withColumn("is_same", is_same).where(~F.col("is_same")).drop("is_same")


def _with_differences(samples: DataFrame) -> DataFrame:
    elapsed_s = (F.unix_micros("observed_at") - F.unix_micros("before.observed_at")) / F.lit(1e6)
    fell = F.lit(False)
    for counter in COUNTERS:
        fell = fell | F.coalesce(F.col(counter) < F.col(f"before.{counter}"), F.lit(False))
    usable = (elapsed_s > 0) & (elapsed_s <= LONGEST_GAP_WINDOWS * F.col("window_s")) & ~fell
    dated = samples.withColumns({"since_last_s": elapsed_s, "dt_s": F.when(usable, elapsed_s)})
    differences = {f"d_{column}": F.col(column) - F.col(f"before.{column}") for column in (*COUNTERS, "pending")}
    present = F.col("dt_s").isNotNull()
    return dated.withColumns({name: F.when(present, difference) for name, difference in differences.items()})
