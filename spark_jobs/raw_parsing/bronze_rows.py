"""Which parsed rows reach bronze, with the faults that only other rows show: those of known vertices, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from include.domain.quarantine_rules import Rule
from include.flink.raw_format import Endpoint
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS
from include.utc import Interval
from spark_jobs.lake import date_hour_columns, keep, rows_of
from spark_jobs.raw_parsing.envelopes import fault
from spark_jobs.raw_parsing.event_bodies import vertex_ids
from spark_jobs.raw_parsing.reply_schema import VERTEX_IDS
from spark_jobs.raw_parsing.typed_lines import FAULT

_KEY = ("cluster_dir", "kind", "job_id", "vertex_id", "observed_at")
VERTEX_KEY = ("cluster_dir", "job_id", "vertex_id")
_NAMED = ("cluster_dir", "job_id", "vertex_ids")


def select_named(rows: DataFrame) -> DataFrame:
    """Return ``cluster_dir, job_id, vertex_ids`` that ``job`` and ``plan`` replies among parsed rows name.

    A job's replies name the same vertices over and over: each array is there once.
    """
    return rows.where("fault IS NULL AND vertex_ids IS NOT NULL").select(*_NAMED).distinct()


def select_named_before(earlier: DataFrame) -> DataFrame:
    """Return the same of rows of bronze.job_events, with ``event`` null where a body has to be read."""
    read = earlier.where(F.col("kind").isin(Endpoint.JOB, Endpoint.PLAN)).select(
        F.col("cluster").alias("cluster_dir"), "job_id", "kind", "event", F.from_json("body", VERTEX_IDS).alias("left")
    )
    ids = F.coalesce(vertex_ids("event"), vertex_ids("left")).alias("vertex_ids")
    return read.select("cluster_dir", "job_id", ids).where("vertex_ids IS NOT NULL").distinct()


def select_measured(rows: DataFrame) -> DataFrame:
    """Return ``cluster_dir, job_id, vertex_id`` of which parsed rows have metrics."""
    return (
        rows.where((F.col("kind") == Endpoint.VERTEX_METRICS) & F.col("fault").isNull()).select(*VERTEX_KEY).distinct()
    )


def find_unknown(measured: pa.Table, *named: pa.Table) -> list[dict[str, object]]:
    """Return the measured vertices that no reply named: a mistake, or of a job that nothing else is known of."""
    rows = (row for one in named for row in one.to_pylist())
    known = {(row["cluster_dir"], row["job_id"], vertex_id) for row in rows for vertex_id in row["vertex_ids"]}
    return [row for row in measured.to_pylist() if tuple(row[name] for name in VERTEX_KEY) not in known]


def mark_rows(rows: DataFrame, unknown: Sequence[Mapping[str, object]], repeated: DataFrame | None) -> DataFrame:
    """Return all rows with every fault, and ``duplicate``.

    Keys of unknown vertices may be repeated: rows that have a fault are passed over when repetitions are marked.
    ``repeated`` has hashes of keys.
    """
    return _mark_duplicates(_mark_unknown(rows, unknown), repeated)


def _mark_unknown(rows: DataFrame, unknown: Sequence[Mapping[str, object]]) -> DataFrame:
    """Give metrics of some vertices the fault ``unknown_vertex``; faults found before stay."""
    named = rows_of(rows.sparkSession, dict.fromkeys(VERTEX_KEY, "STRING"), unknown)
    flagged = rows.join(F.broadcast(named.withColumn("is_unknown", F.lit(True))), list(VERTEX_KEY), "left")
    is_metrics = F.col("fault").isNull() & (F.col("kind") == Endpoint.VERTEX_METRICS)
    detail = F.concat_ws(" ", F.lit("job"), "job_id", F.lit("vertex"), "vertex_id")
    marked = F.when(is_metrics & F.col("is_unknown"), fault(Rule.UNKNOWN_VERTEX, detail).cast(FAULT))
    return flagged.withColumn("fault", F.coalesce(marked, F.col("fault"))).drop("is_unknown")


def find_repeated_keys(rows: DataFrame) -> DataFrame:
    """Return the hashes of keys that stand more than once among rows without fault."""
    good = rows.where("fault IS NULL").groupBy(_key_hash().alias("key_hash"))
    return good.agg(F.count(F.lit(1)).alias("n")).where("n > 1").select("key_hash")


def _mark_duplicates(rows: DataFrame, repeated: DataFrame | None) -> DataFrame:
    return rows.withColumn("duplicate", F.lit(False)) if repeated is None else keep(_mark_repeated(rows, repeated))


def _mark_repeated(rows: DataFrame, repeated: DataFrame) -> DataFrame:
    """Mark every row of a repeated key but the first: ``duplicate``, and a fault when its content differs.

    The first is the one of the earliest directory, then file, then content: later deliveries never displace it.
    Only rows of repeated keys are shuffled.
    """
    hashed = rows.withColumn("key_hash", F.when(F.col("fault").isNull(), _key_hash()))
    flagged = hashed.join(F.broadcast(repeated.withColumn("is_repeated", F.lit(True))), "key_hash", "left")
    single = flagged.where("is_repeated IS NULL").withColumn("duplicate", F.lit(False))
    several = flagged.where("is_repeated").withColumn("content", F.xxhash64("body", "metrics", "value_faults"))
    order = Window.partitionBy("key_hash", *_KEY).orderBy("dir_hour", "source_file", "content", "line_number")
    ranked = several.select(
        "*", F.row_number().over(order).alias("rank"), F.first("content").over(order).alias("kept_content")
    )
    conflict = (F.col("rank") > 1) & (F.col("content") != F.col("kept_content"))
    detail = F.concat_ws(" ", F.lit("another content is kept for job"), "job_id", F.lit("vertex"), "vertex_id")
    marked = ranked.withColumn("duplicate", F.col("rank") > 1).withColumn(
        "fault", F.when(conflict, fault(Rule.DUPLICATE_CONFLICT, detail).cast(FAULT))
    )
    return single.unionByName(marked.select(*single.columns)).drop("key_hash", "is_repeated")


def select_metrics(marked: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of bronze.metrics among marked rows, and in ``sample`` what of their metrics is measured.

    A file of raw lines is read by one task and holds one hour: the tables' files stay few without a shuffle.
    """
    own = marked.where(_is_kept() & (F.col("kind") == Endpoint.VERTEX_METRICS) & _is_observed_in(hours))
    return own.select(
        F.col("cluster_dir").alias("cluster"),
        "job_id",
        "vertex_id",
        "observed_at",
        "metrics",
        "source_file",
        *date_hour_columns("observed_at"),
        "sample",
    ).select(*BRONZE_METRICS.columns, "sample")


def select_events(rows: DataFrame, repeated: DataFrame | None, hours: Interval) -> DataFrame:
    """Return the rows of bronze.job_events, and in ``event`` what is read of their bodies already.

    Which vertices are known matters to metrics alone.
    """
    events = rows.where((F.col("kind") != Endpoint.VERTEX_METRICS) & _is_observed_in(hours))
    retained = _mark_duplicates(events, repeated).where(_is_kept())
    return retained.select(
        F.col("cluster_dir").alias("cluster"),
        "kind",
        "job_id",
        "observed_at",
        "body",
        "source_file",
        *date_hour_columns("observed_at"),
        "event",
    ).select(*BRONZE_JOB_EVENTS.columns, "event")


def select_own_rows(marked: DataFrame, interval: Interval) -> DataFrame:
    """Return the rows of the interval's own directories: the others are another run's to judge."""
    hour = F.col("dir_hour")
    return marked.where((hour >= F.lit(interval.start)) & (hour < F.lit(interval.end)))


def _is_observed_in(hours: Interval) -> Column:
    return (F.col("observed_at") >= F.lit(hours.start)) & (F.col("observed_at") < F.lit(hours.end))


def _is_kept() -> Column:
    return F.col("fault").isNull() & ~F.col("duplicate")


def _key_hash() -> Column:
    return F.xxhash64(*_KEY)
