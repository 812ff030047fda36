"""Which time or interval a DAG run is about: its parameters first, its data interval as the fallback.

The functions are macros of the DAGs' templates.  Nothing here reads the clock, so a retry or a cleared task asks
for the same thing again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from include.utc import Interval, IntervalError, floor_hour, format_utc, parse_utc

HAND_OVER = timedelta(seconds=15)  # the controller stops this long before its next run, which has to start


def requested_interval(
    params: Mapping[str, str | None], interval_start: datetime | None, interval_end: datetime | None
) -> Interval:
    """Return the full hours to ingest.

    A data interval is floored to full hours: the run of 19:05 with the interval [18:05, 19:05) ingests [18:00, 19:00).

    Raises:
        IntervalError: only one of start and end was given, or neither and the run has no data interval.
    """
    start, end = params.get("start"), params.get("end")
    if start and end:
        return Interval.parse(start, end)
    if start or end:
        raise IntervalError("pass both start and end (full hours, UTC), or neither for the run's data interval")
    if interval_start is None or interval_end is None:
        raise IntervalError("this run has no data interval: trigger it with start and end (full hours, UTC)")
    return Interval(floor_hour(interval_start), floor_hour(interval_end))


def requested_start(
    params: Mapping[str, str | None], interval_start: datetime | None, interval_end: datetime | None
) -> str:
    """Return the start of :func:`requested_interval` as ISO 8601."""
    return format_utc(requested_interval(params, interval_start, interval_end).start)


def requested_end(
    params: Mapping[str, str | None], interval_start: datetime | None, interval_end: datetime | None
) -> str:
    """Return the end of :func:`requested_interval` as ISO 8601."""
    return format_utc(requested_interval(params, interval_start, interval_end).end)


class DagRun(Protocol):
    """What is needed of Airflow's DAG run."""

    run_type: str
    run_after: datetime


def requested_as_of(params: Mapping[str, str | None], interval_end: datetime | None, run: DagRun) -> str:
    """Return the time as of which a stage reads the data, as ISO 8601.

    It is the parameter ``as_of``, else the end of the run's data interval, else the time of the request.

    Raises:
        IntervalError: the run belongs to a backfill; models, forecasts and plans are never made for a past horizon.
    """
    as_of = params.get("as_of")
    if as_of:
        return format_utc(parse_utc(as_of))
    if run.run_type == "backfill":
        raise IntervalError("plans are never made for the past: only tidewise_hour can be backfilled")
    return format_utc(interval_end or run.run_after)


def controller_arguments(
    params: Mapping[str, Any], start: datetime | None, end: datetime | None, is_service: bool = False
) -> str:
    """Return the arguments of the controller's process.

    With a time to look from it makes one tick there; else it goes on until the next run is due, which then starts.
    Where the controller is a service of its own, the process only asks whether its ticks come in time.
    """
    if params.get("as_of"):
        return f"--as-of {format_utc(parse_utc(str(params['as_of'])))}"
    if is_service:
        return "--watch"
    if start is not None and end is not None and end > start:
        return f"--until {format_utc(end + (end - start) - HAND_OVER)}"
    return "--once"
