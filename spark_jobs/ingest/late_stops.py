"""Stops of jobs that only a reply of the hours that are written showed, though they began before: what they change.

Of the hours before, nothing but which windows are disturbed: their rows stand, and are not worked out again. Of a fleet
of 1,000 jobs there is such a stop in most hours, and all windows of an hour more took 25 s of processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import BRONZE_METRICS, OBSERVATIONS
from include.utc import Interval, floor_hour
from spark_jobs.ingest.hours import LOOKBACK, read_hours
from spark_jobs.job_history import sample_placement
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.job_history.known_jobs import KnownJobs
from spark_jobs.job_history.observations import mark_disturbed
from spark_jobs.lake import Lake

_JOB = ("cluster", "job")


@dataclass(frozen=True, slots=True)
class LateStops:
    """Late stops of one run.

    Attributes:
        hours: of silver.observations that are written: begun with the hour of the earliest of these stops.
        job_ids: of the jobs that had one, those before and after a stop too.
    """

    hours: Interval
    job_ids: frozenset[str]


def find_late_stops(stops: Sequence[Mapping[str, Any]], hours: Interval, first: datetime) -> LateStops:
    """Return the late stops of the hours that are written, none before ``first``; stops are those of ``find_stops``."""
    late = [row for row in stops if row["detected_at"] >= hours.start > row["started_at"]]
    if not late:
        return LateStops(hours, frozenset())
    began = floor_hour(min(row["started_at"] for row in late))
    jobs = {tuple(row[name] for name in _JOB) for row in late}
    of_jobs = [row for row in stops if tuple(row[name] for name in _JOB) in jobs]
    ids = {row[name] for row in of_jobs for name in ("job_id", "job_id_before")} - {None}
    return LateStops(Interval(max(first, began), hours.end), frozenset(ids))


def read_samples_of_late(lake: Lake, late: LateStops, start: datetime) -> DataFrame | None:
    """Return what was measured of jobs with a late stop before the hour before ``start``, which tells their load.

    From an hour before the hour of the stop on, as :func:`spark_jobs.job_history.sample_placement.read_metrics` gives
    it; None where there is no such stop.
    """
    if not late.job_ids or late.hours.start >= start:
        return None
    of_jobs = read_hours(lake, BRONZE_METRICS, late.hours.start - LOOKBACK, start - LOOKBACK)
    return sample_placement.read_metrics(of_jobs.where(F.col("job_id").isin(*sorted(late.job_ids))))


def read_disturbed(lake: Lake, late: LateStops, start: datetime, jobs: Broadcast[KnownJobs]) -> DataFrame:
    """Return the rows of silver.observations of the hours before, those of unsettled windows marked as disturbed."""
    return map_batches(
        read_hours(lake, OBSERVATIONS, late.hours.start, start),
        lambda batches, schema: mark_disturbed(batches, schema, jobs.value),
        OBSERVATIONS.columns,
    )
