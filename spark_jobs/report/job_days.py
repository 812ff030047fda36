"""How each job ran on each date: slot-hours, late minutes, load, rescales, steps of plans that were due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import JOB_DAYS

DAY = ("cluster", "job", "date")


def bin_load(windows: DataFrame) -> DataFrame:
    """Return ``cluster, job, bin, rate_per_s, slots, late_share`` of bins of five minutes, all sources together.

    ``late_share`` is null where no source tells the age of its backlog.
    """
    binned = windows.withColumn("bin", F.window("window_start", "5 minutes").start)
    figures = [F.avg("rate_per_s").alias("rate_per_s"), F.max("slots").alias("slots")]
    late = F.avg(F.col("is_late").cast("double")).alias("late_share")
    return binned.groupBy("cluster", "job", "bin").agg(*figures, late)


def sum_windows(observations: DataFrame, since: datetime, as_of: datetime, late_after_s: float) -> DataFrame:
    """Return each window of a job: ``window_s, rate_per_s, slots, is_late, date``; null is what is not known.

    It is late when the oldest record that waits at some source is older than ``late_after_s``.
    """
    inside = (F.col("window_start") >= F.lit(since)) & (F.col("window_start") < F.lit(as_of))
    rate = F.when(F.col("is_source"), F.col("target_data_rate_per_s"))
    is_whole = F.count(rate) == F.sum(F.col("is_source").cast("int"))
    age_s = F.max(F.when(F.col("is_source"), F.col("age_s")))
    return (
        observations.where(inside)
        .groupBy("cluster", "job", "date", "window_start")
        .agg(
            F.max("window_s").alias("window_s"),
            F.when(is_whole, F.sum(rate)).alias("rate_per_s"),
            F.max("parallelism").alias("slots"),
            (age_s > late_after_s).alias("is_late"),
        )
    )


def count_paid_slots(windows: DataFrame, taskmanager_slots: Mapping[str, int]) -> DataFrame:
    """Return windows with the slots of whole TaskManagers: cluster -> slots of one; of other clusters as they are."""
    paid = F.col("slots")
    for cluster, size in taskmanager_slots.items():
        paid = F.when(F.col("cluster") == cluster, F.ceil(F.col("slots") / size) * size).otherwise(paid)
    return windows.withColumn("slots", paid)


def count_days(windows: DataFrame, rescales: DataFrame, carried_out: DataFrame, until: datetime) -> DataFrame:
    """Return rows of ``gold.job_days`` until a time, by :func:`sum_windows`, rescales and ``count_carried_out``."""
    seconds = F.col("window_s").cast("double")
    ran = windows.groupBy(*DAY).agg(
        F.sum(F.when(F.col("slots").isNotNull(), seconds)).alias("measured_s"),
        (F.sum(F.col("slots") * seconds) / 3600.0).alias("slot_hours"),
        F.sum(F.when(F.col("is_late").isNotNull(), seconds)).alias("late_known_s"),
        (F.sum(F.when(F.col("is_late"), seconds).otherwise(F.when(F.col("is_late").isNotNull(), 0.0))) / 60.0).alias(
            "late_minutes"
        ),
        F.avg("rate_per_s").alias("load_mean_per_s"),
        F.max("rate_per_s").alias("load_max_per_s"),
    )
    stops = rescales.groupBy("cluster", "job", F.to_date("started_at").alias("date")).agg(
        F.sum((F.col("kind") == "rescale").cast("int")).alias("rescales"),
        F.sum((F.col("kind") == "restart").cast("int")).alias("restarts"),
        F.sum("downtime_s").alias("downtime_s"),
    )
    due = carried_out.withColumnsRenamed({"due": "steps_due", "as_planned": "steps_as_planned"})
    joined = ran.join(stops, [*DAY], "left").join(due, [*DAY], "left").withColumn("until", F.lit(until))
    counts = ("rescales", "restarts", "steps_due", "steps_as_planned")
    counted = {name: F.coalesce(F.col(name), F.lit(0)).cast("int") for name in counts}
    return joined.withColumns(counted).select(*JOB_DAYS.columns)
