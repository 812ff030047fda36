from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.orchestration.run_window import requested_interval
from include.utc import Interval, IntervalError, ceil_hour, floor_hour, format_utc, parse_utc

timestamps = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda timestamp: timestamp.replace(tzinfo=UTC)
)


@given(timestamps)
def test_times_survive_being_written(timestamp):
    assert parse_utc(format_utc(timestamp)) == timestamp


@pytest.mark.parametrize("text", ["2026-11-20T18:00:00Z", "2026-11-20T18:00:00", "2026-11-20T19:00:00+01:00"])
def test_every_spelling_of_a_moment_is_the_same_utc(text):
    assert format_utc(parse_utc(text)) == "2026-11-20T18:00:00Z"


def test_what_is_no_time_is_named():
    with pytest.raises(IntervalError, match="'yesterday' is not an ISO 8601 time"):
        parse_utc("yesterday")


@given(timestamps)
def test_floor_and_ceil_enclose(timestamp):
    assert floor_hour(timestamp) <= timestamp <= ceil_hour(timestamp)
    assert ceil_hour(timestamp) - floor_hour(timestamp) in (timedelta(0), timedelta(hours=1))


@pytest.mark.parametrize(
    ("start", "end", "named"),
    [
        ("2026-11-20T18:00:00Z", "2026-11-20T18:00:00Z", "is not before"),
        ("2026-11-20T19:00:00Z", "2026-11-20T18:00:00Z", "is not before"),
        ("2026-11-20T18:05:00Z", "2026-11-20T19:00:00Z", "not on a full hour"),
    ],
)
def test_an_interval_is_full_hours_in_order(start, end, named):
    with pytest.raises(IntervalError, match=named):
        Interval.parse(start, end)


def test_an_interval_has_each_of_its_hours_once():
    hours = list(Interval.parse("2026-11-20T22:00:00Z", "2026-11-21T01:00:00Z").hours())
    assert [format_utc(hour) for hour in hours] == [
        "2026-11-20T22:00:00Z",
        "2026-11-20T23:00:00Z",
        "2026-11-21T00:00:00Z",
    ]


@given(timestamps)
def test_hourly_runs_tile_time_without_gap_or_overlap(timestamp):
    hour = timedelta(hours=1)
    first = requested_interval({}, timestamp, timestamp + hour)
    second = requested_interval({}, timestamp + hour, timestamp + 2 * hour)
    assert first.end == second.start
    assert first.end - first.start == hour
