"""bronze.metrics as wide rows, one per vertex and poll, in the order in which :mod:`models.observing` reads them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster
from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.job_history.metric_rows import REPLY_KEY, read_rows
from spark_jobs.job_history.operator_names import is_named_at
from spark_jobs.job_history.vertex_rows import OPERATOR_KEY, VERTEX_KEY

_WIDE_COLUMNS = {
    "cluster": "STRING",
    "job_id": "STRING",
    "vertex_id": "STRING",
    "observed_at": "TIMESTAMP",
    **dict.fromkeys(COLUMNS, "DOUBLE"),
    "subtasks": "DOUBLE",
}


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
    """Return bronze rows as wide rows.

    Args:
        metrics: rows of bronze.metrics.
        operators: ``cluster, job_id, vertex_id`` -> ``job, operator, is_source``, ``named_from`` to ``named_until``.
        changes: from :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
        clusters: the settings of the clusters, for the window length.

    Returns:
        ``VERTEX_KEY``, ``observed_at`` and :data:`models.observing.metric_table.COLUMNS`.  All rows of an operator
        follow each other in one partition, those of a vertex by time.
    """
    # A reply without metrics (a vertex that is being deployed) is no measurement.
    given = metrics.where(F.size("metrics") > 0)
    keys = ["cluster", "job_id", "vertex_id"]
    wide = map_batches(given.select(*REPLY_KEY, "metrics"), read_rows, _WIDE_COLUMNS)
    named = wide.join(F.broadcast(operators), keys).where(is_named_at(F.col("observed_at")))
    sized = _drop_partial(named, changes).withColumn("window_s", window_length_s(clusters))
    placed = sized.repartition(*OPERATOR_KEY)
    # A number first: when rows are sorted, most of them differ in what is compared first.
    ordered = placed.sortWithinPartitions(F.xxhash64(*OPERATOR_KEY), *VERTEX_KEY, "observed_at")
    return ordered.select(*VERTEX_KEY, "observed_at", *COLUMNS)


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
