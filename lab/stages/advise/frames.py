"""What the appraisal of a job is made from, one row per job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include import tables
from include.settings import Settings
from include.utc import Interval
from lab.backtest.comparison import BIN_S, DAY_BINS
from lab.stages.inputs.subjects import history_frame, subjects
from lab.stages.inputs.what_ran import Followed, follow_jobs, select_span
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.row_conditions import is_chosen
from spark_jobs.source_inputs.source_windows import HistoryFrame
from spark_jobs.timestamps import timestamp_column


@dataclass(frozen=True, slots=True)
class Span:
    """The bins of :data:`lab.backtest.comparison.BIN_S` in which what ran is followed.

    Attributes:
        start_s: epoch seconds of the first: some days before those that are appraised, in which policies learn.
        bins: how many.
        scored: when the days that are appraised begin.
        end: when they end.
    """

    start_s: int
    bins: int
    scored: datetime
    end: datetime

    @classmethod
    def of(cls, days: Interval, settings: Settings) -> Span:
        """Return the span of some days to appraise."""
        before = timedelta(days=settings.backtest.learning_days, hours=1)
        end_s = int(days.end.timestamp())
        bins = int(((days.end - days.start) + before).total_seconds() // BIN_S)
        return cls(end_s - bins * BIN_S, bins, days.start, days.end)

    @property
    def followed(self) -> Followed:
        """All of the bins."""
        return Followed(self.start_s, self.bins)


def collect_inputs(lake: Lake, settings: Settings, span: Span) -> tuple[DataFrame, HistoryFrame]:
    """Return one row per job that is asked for: graph, sources, and what ran; and the frame of its load."""
    frame = history_frame(settings, span.end)
    jobs = subjects(lake, frame, span.end).where(is_chosen(settings.advise.jobs))
    followed = span.followed
    observed = select_span(lake.read(tables.OBSERVATIONS), followed)
    capacity = measured_capacity(observed, span, settings)
    rows = follow_jobs(lake, settings, jobs, followed).join(capacity, JOB, "left")
    return rows, frame


def count_history(lake: Lake, settings: Settings, end: datetime) -> dict[str, object]:
    """Return from when to when the history reaches, for the page."""
    since = end - timedelta(days=settings.training.lookback_days)
    of_days = F.col("date").between(F.lit(since.date()), F.lit(end.date()))
    rows = lake.read(tables.OBSERVATIONS).where(of_days & (F.col("window_start") < timestamp_column(end)))
    result = rows.agg(F.min("window_start").alias("first"), F.max("window_start").alias("last")).first()
    return {} if result is None else result.asDict()


def measured_capacity(seen: DataFrame, span: Span, settings: Settings) -> DataFrame:
    """Return per job ``capacity``: what each operator could process at each parallelism in the appraised days."""
    usable = (
        (F.col("window_start") >= timestamp_column(span.scored))
        & ~F.coalesce(F.col("disturbed"), F.lit(False))
        & (F.col("busy_share") >= settings.training.min_busy_share)
        & (F.col("true_processing_rate_per_s") > 0)
    )
    mean = F.avg("true_processing_rate_per_s").alias("mean_per_s")
    points = seen.where(usable).groupBy(*JOB, "operator", "parallelism").agg(mean, F.count(F.lit(1)).alias("windows"))
    one = F.struct("operator", "parallelism", "mean_per_s", "windows")
    return points.groupBy(*JOB).agg(F.collect_list(one).alias("capacity"))


def days_of(span: Span) -> int:
    """Return the whole days that are appraised."""
    return round((span.end - span.scored).total_seconds() / (DAY_BINS * BIN_S))
