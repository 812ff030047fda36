"""Parsed rows with the faults that only other rows show, and what of them reaches bronze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Endpoint
from include.utc import Interval
from spark_jobs.lake import keep, rows_of
from spark_jobs.raw_parsing import bronze_rows


def mark_rows(rows: DataFrame, unknown: Sequence[Mapping[str, object]], repeated: DataFrame | None) -> DataFrame:
    """Return all rows with every fault, and ``duplicate``.

    Args:
        rows: about lines.
        unknown: vertices from :func:`spark_jobs.raw_parsing.bronze_rows.find_unknown`.
        repeated: hashes of keys; None without any.
    """
    named = rows_of(rows.sparkSession, dict.fromkeys(bronze_rows.VERTEX_KEY, "STRING"), unknown)
    # Keys of unknown vertices may be repeated: rows that have a fault are passed over when repetitions are marked.
    return _mark_duplicates(bronze_rows.mark_unknown(rows, named), repeated)


def select_events(rows: DataFrame, repeated: DataFrame | None, hours: Interval) -> DataFrame:
    """Return the rows of bronze.job_events; which vertices are known matters to metrics alone."""
    is_event = ~F.col("kind").eqNullSafe(F.lit(str(Endpoint.VERTEX_METRICS)))
    return bronze_rows.select_event_rows(_mark_duplicates(rows.where(is_event & _is_observed_in(hours)), repeated))


def select_metrics(marked: DataFrame, hours: Interval) -> DataFrame:
    """Return the rows of bronze.metrics, and in ``sample`` what of their metrics is measured.

    A file of raw lines is read by one task and holds one hour: the tables' files stay few without a shuffle.
    """
    return bronze_rows.select_metrics_rows(marked.where(_is_observed_in(hours)))


def select_own_rows(marked: DataFrame, interval: Interval) -> DataFrame:
    """Return the rows of the interval's own directories: the others are another run's to judge."""
    hour = F.col("dir_hour")
    return marked.where((hour >= F.lit(interval.start)) & (hour < F.lit(interval.end)))


def _mark_duplicates(rows: DataFrame, repeated: DataFrame | None) -> DataFrame:
    if repeated is None:
        return rows.withColumn("duplicate", F.lit(False))
    return keep(bronze_rows.mark_repeated(rows, repeated))


def _is_observed_in(hours: Interval) -> Column:
    return (F.col("observed_at") >= F.lit(hours.start)) & (F.col("observed_at") < F.lit(hours.end))
