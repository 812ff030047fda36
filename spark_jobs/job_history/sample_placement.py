"""Metrics as wide rows, one per vertex and poll, the rows of each job together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.settings import Cluster
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.lake import rows_of
from spark_jobs.raw_parsing.sample_columns import SAMPLE, SAMPLE_COLUMNS, read_samples

_ID = {"cluster": "STRING", "job_id": "STRING"}
REPLY_KEY = {**_ID, "vertex_id": "STRING", "observed_at": "TIMESTAMP"}


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


def place_samples(replies: DataFrame, names: pa.Table) -> DataFrame:
    """Return replies with metrics as wide rows, all of a job in one partition and after each other.

    Replies have ``REPLY_KEY`` and ``sample``, null where one had no metrics; names ``cluster, job_id, job`` of
    vertices. The rows have ``place`` (the same of all rows of a job), ``REPLY_KEY`` and
    :data:`spark_jobs.raw_parsing.sample_columns.SAMPLE_COLUMNS`.
    """
    wide = replies.where("sample IS NOT NULL").select(*REPLY_KEY, "sample.*")
    together = rows_of(replies.sparkSession, {**_ID, "shared": "STRING"}, _find_shared(names))
    joined = wide.join(F.broadcast(together), list(_ID), "left")
    placed = joined.withColumn("place", F.xxhash64("cluster", F.coalesce("shared", "job_id")))
    # A number first: when rows are sorted, most of them differ in what is compared first.
    return placed.repartition("place").sortWithinPartitions("place").select("place", *REPLY_KEY, *SAMPLE_COLUMNS)


def _find_shared(names: pa.Table) -> list[dict[str, object]]:
    """Return the ids that share a name with another, and what is the same of all that do, also through a third."""
    roots: dict[tuple[str, ...], tuple[str, ...]] = {}

    def root_of(one: tuple[str, ...]) -> tuple[str, ...]:
        while (above := roots.setdefault(one, one)) != one:
            one = above
        return one

    links = names.select([*_ID, "job"]).group_by([*_ID, "job"]).aggregate([]).to_pydict()
    for cluster, job_id, job in zip(*links.values(), strict=True):
        roots[root_of((cluster, job_id))] = root_of((cluster, "", job))
    number = Counter(root_of(one) for one in set(zip(*(links[name] for name in _ID), strict=True)))
    ids = ((one, root_of(one)) for one in list(roots) if len(one) == len(_ID))
    return [{**dict(zip(_ID, one, strict=True)), "shared": root[-1]} for one, root in ids if number[root] > 1]
