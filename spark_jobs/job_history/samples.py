"""Metrics as wide rows, one per vertex and poll, in the order in which :mod:`models.observing` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster
from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.job_history.operator_names import is_named_at
from spark_jobs.job_history.vertex_rows import JOB_KEY, VERTEX_KEY
from spark_jobs.raw_parsing.sample_columns import SAMPLE, read_samples

REPLY_KEY = {"cluster": "STRING", "job_id": "STRING", "vertex_id": "STRING", "observed_at": "TIMESTAMP"}


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


def read_metrics(metrics: DataFrame) -> DataFrame:
    """Return rows of bronze.metrics as replies that were read: ``REPLY_KEY`` and ``sample``."""
    return map_batches(metrics.select(*REPLY_KEY, "metrics"), _read_batches, {**REPLY_KEY, "sample": SAMPLE})


def _read_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sample = read_samples(batch.column("metrics")).cast(schema.field("sample").type)
        yield pa.RecordBatch.from_arrays([*map(batch.column, REPLY_KEY), sample], schema=schema)


def select_read(metrics: DataFrame) -> DataFrame:
    """Return rows whose metrics were read with their lines as :func:`read_metrics` does."""
    return metrics.select(*REPLY_KEY, "sample")


def build_samples(
    replies: DataFrame, operators: DataFrame, changes: DataFrame, clusters: Mapping[str, Cluster]
) -> DataFrame:
    """Return replies with metrics as wide rows.

    Args:
        replies: ``REPLY_KEY`` and ``sample``, null where a reply had no metrics.
        operators: ``cluster, job_id, vertex_id`` -> ``job, operator, is_source``, ``named_from`` to ``named_until``.
        changes: from :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
        clusters: the settings of the clusters, for the window length.

    Returns:
        ``VERTEX_KEY``, ``observed_at`` and :data:`models.observing.metric_table.COLUMNS`.  All rows of a job
        follow each other in one partition, those of a vertex by time.
    """
    keys = ["cluster", "job_id", "vertex_id"]
    wide = replies.where("sample IS NOT NULL").select(*REPLY_KEY, "sample.*")
    named = wide.join(F.broadcast(operators), keys).where(is_named_at(F.col("observed_at")))
    sized = _drop_partial(named, changes).withColumn("window_s", window_length_s(clusters))
    placed = sized.repartition(*JOB_KEY)
    # A number first: when rows are sorted, most of them differ in what is compared first.
    ordered = placed.sortWithinPartitions(F.xxhash64(*JOB_KEY), *VERTEX_KEY, "observed_at")
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
