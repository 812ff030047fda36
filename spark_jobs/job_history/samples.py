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
from models.observing.metric_table import COUNTERS, SUBTASK_COUNTERS, TASK_METRICS, TELLING_MEAN
from models.observing.samples import LONGEST_GAP_WINDOWS
from spark_jobs.job_history.operator_names import is_named_at
from spark_jobs.job_history.source_rates import SourceCounts, choose_taken, sum_of_backlogs, sum_of_sources

# Ids first: when rows are sorted, most of them differ in the first bytes that are compared.
VERTEX_KEY = ("job_id", "vertex_id", "cluster", "job", "operator", "is_source", "window_s")
_RETAINED = ("in_total", "taken_total")


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


def build_samples(
    metrics: DataFrame, operators: DataFrame, changes: DataFrame, clusters: Mapping[str, Cluster]
) -> DataFrame:
    """Return bronze rows as wide samples with the differences to the sample before.

    Args:
        metrics: rows of bronze.metrics.
        operators: ``cluster, job_id, vertex_id`` -> ``job, operator, is_source``, ``named_from`` to ``named_until``.
        changes: from :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
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
    wide = named.select(*keys, "job", "operator", "is_source", "is_resubmitted", "observed_at", *_wide_columns())
    measured = _drop_partial(wide, changes)
    sized = measured.withColumn("window_s", window_length_s(clusters))
    dated = sized.withColumn("window_start", window_start("observed_at"))
    # One shuffle for all that follows: every later grouping of a stage holds (cluster, job, operator).
    placed = dated.repartition("cluster", "job", "operator")
    by_vertex = Window.partitionBy(*VERTEX_KEY).orderBy("window_start", "observed_at")
    # In the order that the next window needs, so that nothing is sorted twice.
    moved = _drop_stale(placed, by_vertex)
    before = F.lag(F.struct("observed_at", "pending", *COUNTERS)).over(by_vertex)
    counted = _with_differences(moved.withColumn("before", before)).withColumn("taken_total", _taken_total())
    return counted.drop("before", *(set(COUNTERS) - set(_RETAINED)))


def _has_several(column: str, *of: str) -> Column:
    each = Window.partitionBy(*of)
    return F.min(column).over(each) < F.max(column).over(each)


def select_source_samples(samples: DataFrame) -> DataFrame:
    """Return the samples of sources that show their backlog, with ``lag_s`` (of input) and ``target_per_s``.

    Both are null where no rate is known; ``taken_total`` (records since the job runs) and ``pending`` are as read.
    """
    counted = choose_taken(
        SourceCounts(
            F.col("d_in_total"),
            F.col("d_out_total"),
            F.col("d_source_in_total"),
            F.col("d_source_out_total"),
            F.col("in_total") > 0,
        )
    )
    gauges = SourceCounts(
        F.col("in_gauge_per_s"), F.col("out_gauge_per_s"), F.lit(None), F.lit(None), F.col("in_total") > 0
    )
    taken = F.coalesce(F.when(F.col("dt_s") > 0, counted / F.col("dt_s")), choose_taken(gauges))
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
        F.when(pending == 0, F.lit(0.0)).when(taken > 0, pending / taken).alias("lag_s"),
        F.when(taken.isNotNull() & growth.isNotNull(), F.greatest(taken + growth, F.lit(0.0))).alias("target_per_s"),
        "taken_total",
        "pending",
    )


def _taken_total() -> Column:
    """Return the records that a source took in since the job runs."""
    return F.when(
        F.col("is_source"),
        choose_taken(
            SourceCounts(
                F.col("in_total"),
                F.col("out_total"),
                F.col("source_in_total"),
                F.col("source_out_total"),
                F.lit(False),
            )
        ),
    )


def _wide_columns() -> list[Column]:
    """Return each metric's aggregation, found by its name; a source's own by names that begin with its operator's."""
    of_source = {
        "source_in_total": sum_of_sources("numRecordsIn"),
        "source_out_total": sum_of_sources("numRecordsOut"),
        "pending": sum_of_backlogs(),
    }
    return [
        *[_metric(metric)[aggregation].alias(column) for column, (metric, aggregation) in TASK_METRICS.items()],
        *[F.when(F.col("is_source"), value).alias(column) for column, value in of_source.items()],
        F.least(*[_count_subtasks(_metric(metric)) for metric in SUBTASK_COUNTERS]).alias("subtasks"),
    ]


def _metric(metric: str) -> Column:
    """Return a metric's aggregations, null where it is missing."""
    return F.get("metrics", F.array_position("metrics.id", metric).cast("INT") - 1)  # null at -1


def _count_subtasks(metric: Column) -> Column:
    """Return over how many subtasks a counter was added up, null where it does not tell."""
    return F.when(metric["avg"] >= TELLING_MEAN, F.round(metric["sum"] / metric["avg"]))


def _drop_partial(samples: DataFrame, changes: DataFrame) -> DataFrame:
    """Leave out samples that are aggregates over fewer subtasks than ran: no measurement of their vertex."""
    reported = samples.withColumn("sample_hour", F.date_trunc("hour", "observed_at"))
    periods = F.broadcast(spread_over_hours(changes, "sample_hour"))
    keys = ("cluster", "job_id", "vertex_id", "sample_hour")
    same_hour = [F.col(f"s.{key}") == F.col(f"p.{key}") for key in keys]
    in_force = (F.col("valid_from") <= F.col("observed_at")) & (F.col("valid_to") > F.col("observed_at"))
    is_partial = F.col("subtasks") < F.col("p.parallelism")
    return (
        reported.alias("s")
        .join(periods.alias("p"), [*same_hour, in_force, is_partial], "left_anti")
        .drop("sample_hour", "subtasks")
    )


def spread_over_hours(periods: DataFrame, column: str) -> DataFrame:
    """Return periods once for each hour that they touch, so that a row meets the few of its hour."""
    hours = F.sequence(F.date_trunc("hour", "valid_from"), F.date_trunc("hour", "valid_to"), F.expr("INTERVAL 1 HOUR"))
    return periods.withColumn(column, F.explode(hours))


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
