"""Parsed rows with the faults that only other rows show, and what of them reaches bronze."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Kind
from include.utc import Interval
from spark_jobs.ingest.hours import LOOKBACK
from spark_jobs.raw_parsing import bronze_rows


def find_known_vertices(rows: DataFrame, earlier: DataFrame, hours: Interval) -> DataFrame:
    """Return the vertices that a reply of these hours, or of the last before, named.

    Args:
        rows: about lines.
        earlier: from :func:`spark_jobs.ingest.earlier_replies.read_earlier_replies`, at least of the last hour before.
        hours: that are written.
    """
    last = earlier.where(F.col("observed_at") >= F.lit(hours.start - LOOKBACK))
    return bronze_rows.find_known_vertices(rows, last)


def mark_rows(rows: DataFrame, known: DataFrame, repeated: DataFrame | None) -> DataFrame:
    """Return all rows with every fault, and ``duplicate``."""
    # Keys of unknown vertices may be repeated: rows that have a fault are passed over when repetitions are marked.
    return _mark_duplicates(bronze_rows.mark_unknown(rows, known), repeated)


def select_events(rows: DataFrame, repeated: DataFrame | None, hours: Interval) -> DataFrame:
    """Return the rows of bronze.job_events; which vertices are known matters to metrics alone."""
    is_event = ~F.col("kind").eqNullSafe(F.lit(str(Kind.VERTEX_METRICS)))
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
    return bronze_rows.mark_repeated(rows, repeated).localCheckpoint()


def _is_observed_in(hours: Interval) -> Column:
    return (F.col("observed_at") >= F.lit(hours.start)) & (F.col("observed_at") < F.lit(hours.end))
