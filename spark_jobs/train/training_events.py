"""Training data of recovery models: the recent events, and what their jobs sustained after them."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Training
from spark_jobs.timestamps import timestamp_column

JOB = ("cluster", "job")
RECENT_EVENTS = 40  # per job and kind; older ones are not typical of the present job
MEASURED_FOR_S = 3600  # after an event its capacity is measured over so long, or until the next one
COLUMNS = (
    "kind",
    "cause_kind",
    "started_at",
    "running_at",
    "next_started_at",
    "parallelism_after",
    "downtime_s",
    "catch_up_s",
    "unseen_s",
    "emitted_records",
    "pending_records",
    "pending_before_records",
    "load_per_s",
    "load_after_per_s",
    "source_load_per_s",
    "checkpoint_age_s",
    "state_size_bytes",
)


def recent_events(rescales: DataFrame, as_of: datetime, training: Training) -> DataFrame:
    """The most recent rescales and restarts per job and kind that were over before ``as_of``, with COLUMNS."""
    since = as_of - timedelta(days=training.lookback_days)
    by_job = Window.partitionBy(*JOB).orderBy("started_at")
    age = F.row_number().over(Window.partitionBy(*JOB, "kind").orderBy(F.col("started_at").desc()))
    days = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    over = (F.col("started_at") >= timestamp_column(since)) & (F.col("running_at") < timestamp_column(as_of))
    dated = rescales.where(days).withColumn("next_started_at", F.lead("started_at").over(by_job))
    recent = dated.where(over & F.col("downtime_s").isNotNull()).withColumn("age", age)
    # Of a table that was written before the kinds were told apart.
    cause = F.coalesce("cause_kind", F.when(F.col("kind") == "rescale", "rescale").otherwise("job_failure"))
    return recent.where(F.col("age") <= RECENT_EVENTS).withColumn("cause_kind", cause).select(*JOB, *COLUMNS)


def with_capacity_after(events: DataFrame, observations: DataFrame) -> DataFrame:
    """Add ``capacity_after_per_s``: what all sources emitted over the share that the busiest operator was busy.

    It is the mean of the undisturbed windows after an event; null without one.
    """
    busiest = F.max("busy_share")
    emitted = F.sum(F.when(F.col("is_source"), F.col("output_per_s")))
    windows = observations.groupBy(*JOB, "window_start").agg((emitted / busiest).alias("sustained_per_s"))
    longest = F.col("running_at") + F.make_dt_interval(secs=F.lit(float(MEASURED_FOR_S)))
    ends = F.least(F.coalesce("next_started_at", longest), longest)
    hours = F.sequence(F.date_trunc("hour", "running_at"), F.date_trunc("hour", ends), F.expr("INTERVAL 1 HOUR"))
    spans = events.select(*JOB, "started_at", "running_at", ends.alias("ends"), F.explode(hours).alias("hour"))
    at_hours = windows.withColumn("hour", F.date_trunc("hour", "window_start"))
    inside = (F.col("window_start") >= F.col("running_at")) & (F.col("window_start") < F.col("ends"))
    measured = (
        at_hours.join(F.broadcast(spans), [*JOB, "hour"])
        .where(inside)
        .groupBy(*JOB, "started_at")
        # Rounded: the last bits of a sum depend on how its rows are spread.
        .agg(F.round(F.avg("sustained_per_s"), 3).alias("capacity_after_per_s"))
    )
    return events.join(measured, [*JOB, "started_at"], "left").select(*JOB, *COLUMNS, "capacity_after_per_s")
