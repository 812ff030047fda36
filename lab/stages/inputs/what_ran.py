"""What really ran in some days, one row per job: parallelism, lateness, rescales and failures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include import tables
from include.domain.graph import JobGraph
from include.domain.slots import count_paid
from include.settings import Settings
from lab.advice.history import History
from lab.backtest.subject import BIN_S
from models.arrays import Floats
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.timestamps import timestamp_column


@dataclass(frozen=True, slots=True)
class Followed:
    """The bins of :data:`lab.backtest.subject.BIN_S` in which what ran is followed.

    Attributes:
        start_s: epoch seconds of the first.
        bins: how many.
    """

    start_s: int
    bins: int

    @classmethod
    def until(cls, end_s: float, length: timedelta) -> Followed:
        """Return the whole bins of some time before an end, epoch seconds."""
        bins = int(length.total_seconds() // BIN_S)
        return cls(round(end_s) - bins * BIN_S, bins)

    @property
    def start(self) -> datetime:
        """When the first bin begins."""
        return datetime.fromtimestamp(self.start_s, UTC)

    @property
    def end(self) -> datetime:
        """When the last one ends."""
        return datetime.fromtimestamp(self.start_s + self.bins * BIN_S, UTC)


def follow_jobs(lake: Lake, settings: Settings, jobs: DataFrame, span: Followed) -> DataFrame:
    """Return rows of jobs with ``ran``, ``late`` and ``events`` of what ran; null where nothing did."""
    observed = select_span(lake.read(tables.OBSERVATIONS), span)
    return (
        jobs.join(follow_parallelism(observed), JOB, "left")
        .join(follow_lateness(observed, find_late_after_s(settings)), JOB, "left")
        .join(list_events(lake.read(tables.RESCALES), span), JOB, "left")
    )


def select_span(observations: DataFrame, span: Followed) -> DataFrame:
    """Return the windows of the span with their bin."""
    of_days = F.col("date").between(F.lit(span.start.date()), F.lit(span.end.date()))
    at_s = F.unix_timestamp("window_start")
    inside = (at_s >= span.start_s) & (at_s < span.start_s + span.bins * BIN_S)
    return observations.where(of_days & inside).withColumn("bin", F.floor((at_s - span.start_s) / BIN_S).cast("int"))


def find_late_after_s(settings: Settings) -> Column:
    """Return from which age on a waiting record makes its job late, s: the job's own goal, else that of all."""
    result = F.lit(settings.planner.costs.late_after_s)
    for key in settings.planner.jobs:
        cluster, job = key.split("/", maxsplit=1)
        own_s = settings.planner.for_job(cluster, job).costs.late_after_s
        is_job = (F.col("cluster") == cluster) & (F.col("job") == job)
        result = F.when(is_job, F.lit(own_s)).otherwise(result)
    return result


def follow_parallelism(seen: DataFrame) -> DataFrame:
    """Return per job ``ran``: bin, operator and the parallelism with which the bin ended."""
    known = seen.where(F.col("parallelism").isNotNull())
    last = F.max_by("parallelism", "window_start").alias("parallelism")
    bins = known.groupBy(*JOB, "operator", "bin").agg(last)
    return bins.groupBy(*JOB).agg(F.collect_list(F.struct("bin", "operator", "parallelism")).alias("ran"))


def follow_lateness(seen: DataFrame, late_after_s: Column) -> DataFrame:
    """Return per job ``late``: bin and the share of it in which the oldest record was older than allowed.

    A source whose backlog is not known takes no part; a bin without any is left out.
    """
    late = F.avg((F.col("age_s") > late_after_s).cast("double"))
    sources = seen.where("is_source").groupBy(*JOB, "operator", "bin").agg(late.alias("share"))
    bins = sources.groupBy(*JOB, "bin").agg(F.max("share").alias("share")).where("share IS NOT NULL")
    return bins.groupBy(*JOB).agg(F.collect_list(F.struct("bin", "share")).alias("late"))


def list_events(rescales: DataFrame, span: Followed) -> DataFrame:
    """Return per job ``events``: kind, begin and downtime of its rescales and failures in the span."""
    of_days = F.col("date").between(F.lit(span.start.date()), F.lit(span.end.date()))
    inside = F.col("started_at").between(timestamp_column(span.start), timestamp_column(span.end))
    at_s: Column = F.col("started_at").cast("double").alias("at_s")
    one = F.struct("kind", at_s, F.col("downtime_s").alias("downtime_s"))
    return rescales.where(of_days & inside).groupBy(*JOB).agg(F.collect_list(one).alias("events"))


def build_history(graph: JobGraph, span: Followed, state: Mapping[Any, Any], taskmanager_slots: int = 1) -> History:
    """Return what ran, in the order of the graph's operators; other operators are left out.

    Args:
        graph: of the job.
        span: that was followed.
        state: a row of :func:`follow_jobs`.
        taskmanager_slots: slots of a TaskManager, of which whole ones were paid.
    """
    place = {name: index for index, name in enumerate(graph.names)}
    parallelism = np.zeros((span.bins, len(place)), np.int64)
    for one in list_structs(state["ran"]):
        if one["operator"] in place:
            parallelism[one["bin"], place[one["operator"]]] = one["parallelism"]
    late = np.full(span.bins, np.nan)
    for one in list_structs(state["late"]):
        late[one["bin"]] = one["share"] * BIN_S
    observed = parallelism.max(axis=1)
    events = list_structs(state["events"])
    return History(
        start_s=span.start_s,
        parallelism=parallelism,
        slots=np.where(observed > 0, count_paid(observed, taskmanager_slots), np.nan),
        late_s=late,
        rescale_s=_times(events, "rescale"),
        failure_s=_times(events, "restart"),
        downtimes_s=np.array(
            [one["downtime_s"] for one in events if one["kind"] == "rescale" and _is_number(one["downtime_s"])], float
        ),
    )


def list_structs(values: Any) -> Sequence[Any]:
    """Return the structs of a column; none where a join found no row."""
    return [] if values is None or (isinstance(values, float) and math.isnan(values)) else values


def _times(events: Sequence[Any], kind: str) -> Floats:
    return np.sort(np.array([one["at_s"] for one in events if one["kind"] == kind], float))


def _is_number(value: Any) -> bool:
    return value is not None and math.isfinite(value)
