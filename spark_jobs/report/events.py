"""What came of the events that people knew of: ``gold.event_results``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include import tables
from include.settings import Event, Settings
from models.forecasting.event_outcomes import judge_event
from models.forecasting.known_events import KnownEvent, list_events
from spark_jobs.lake import Lake
from spark_jobs.row_conditions import is_demand

SHOWN_DAYS = 14
"""So long after its end an event is shown."""
AHEAD = timedelta(days=2)
_SERIES = ("cluster", "job", "operator")


def list_event_results(lake: Lake, settings: Settings, now: datetime) -> list[dict[str, object]]:
    """Return what came of the events that have begun and ended no longer than two weeks ago, as rows of the table."""
    since = now - timedelta(days=SHOWN_DAYS)
    begun = {name: one for name, one in settings.events.items() if one.starts_at < now and one.ends_at > since}
    return [row for name, one in begun.items() for row in _list_rows(lake, name, one, now)]


def _list_rows(lake: Lake, name: str, event: Event, now: datetime) -> Iterator[dict[str, object]]:
    rows = compare_with_forecast(lake.read(tables.OBSERVATIONS), lake.read(tables.FORECASTS), event, now).toPandas()
    for (cluster, job, source), own in rows.groupby(list(_SERIES)):  # type: ignore[misc]
        for known in list_events({name: event}, f"{cluster}/{job}", str(source)):
            announced, arrived, proposed = describe_event(known, own, now)
            texts = {"announced": announced, "came": arrived, "proposed": proposed}
            key = {"event": name, "cluster": str(cluster), "job": str(job), "operator": str(source)}
            yield {**key, **texts, "as_of": now, "date": now.date()}


def describe_event(event: KnownEvent, rows: pd.DataFrame, now: datetime) -> list[str]:
    """Return what was said of an event, what came, and what to write next time, of one source.

    The rows have ``bin_start``, ``bin_s``, ``came_per_s`` and ``usual_per_s`` of its bins so far.
    """
    unit, end_s = "/s" if event.is_rate else "x", min(event.ends_s, now.timestamp())
    announced = f"{event.value:g}{unit} ({event.low:g} to {event.high:g})"
    bins = round((end_s - event.starts_s) / float(rows["bin_s"].iloc[0]))
    actual, usual = (np.array(rows[name], float) for name in ("came_per_s", "usual_per_s"))
    made = judge_event(event, actual, usual, bins)
    if made is None:
        return [announced, "too little of it was measured", ""]
    where = "within what was said" if made.is_within else "outside of what was said"
    if event.ends_s > now.timestamp():
        return [announced, f"{made.came:.3g}{unit} so far, {where}", "it is not over"]
    return [announced, f"{made.came:.3g}{unit}, {where}", made.propose(event.is_rate)]


def compare_with_forecast(observations: DataFrame, forecasts: DataFrame, event: Event, now: datetime) -> DataFrame:
    """Return the bins of an event's sources: what came, and the forecast's median without the event.

    Of the forecasts of a bin the last one from before the event counts, else the last from before the bin: it has
    learnt from none of the event's windows.
    """
    until = min(event.ends_at, now)
    jobs = F.concat_ws("/", "cluster", "job").isin(list(event.job_keys))
    of_days = F.col("date").between(F.lit((event.starts_at - AHEAD).date()), F.lit(until.date()))
    inside = F.col("bin_start").between(F.lit(event.starts_at), F.lit(until - timedelta(microseconds=1)))
    made = forecasts.where(of_days & jobs & inside & (F.col("as_of") <= F.col("bin_start")))
    is_before = (F.col("as_of") <= F.lit(event.starts_at)).cast("int")
    newest = Window.partitionBy(*_SERIES, "bin_start").orderBy(F.desc(is_before), F.desc("as_of"))
    usual = (F.col("q50_per_s") / F.coalesce("event_factor", F.lit(1.0))).alias("usual_per_s")
    bins = (
        made.withColumn("rank", F.row_number().over(newest))
        .where("rank = 1")
        .select(*_SERIES, "bin_start", "bin_s", usual)
    )
    width = F.when(F.col("window_s") > 0, F.col("window_s"))
    measured = observations.where(of_days & jobs & F.col("is_source") & is_demand() & width.isNotNull()).where(
        F.col("window_start").between(F.lit(event.starts_at), F.lit(until - timedelta(microseconds=1)))
    )
    at_s = F.unix_timestamp("bin_start")
    window_s = F.unix_timestamp("window_start")
    near = (window_s >= at_s) & (window_s < at_s + F.col("bin_s"))
    own = measured.select(*_SERIES, "window_start", "target_data_rate_per_s").alias("seen")
    joined = bins.alias("bins").join(
        own, [F.col(f"bins.{name}") == F.col(f"seen.{name}") for name in _SERIES] + [near], "left"
    )
    key = [F.col(f"bins.{name}").alias(name) for name in (*_SERIES, "bin_start", "bin_s", "usual_per_s")]
    return (
        joined.select(*key, F.col("seen.target_data_rate_per_s").alias("rate_per_s"))
        .groupBy(*_SERIES, "bin_start", "bin_s", "usual_per_s")
        .agg(F.avg("rate_per_s").alias("came_per_s"))
        .orderBy(*_SERIES, "bin_start")
    )
