"""What came of an event beside what was said of it, and what is proposed for the next one."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from include.settings import check_settings
from models.forecasting.event_outcomes import judge_event
from models.forecasting.known_events import KnownEvent
from spark_jobs.report.events import describe_event

SALE = KnownEvent("sale", 0.0, 7200.0, 2.4, 3.0, 3.75)


def test_the_factor_that_came_is_measured_over_the_whole_event() -> None:
    usual = np.linspace(100.0, 200.0, 24)
    made = judge_event(SALE, 2.0 * usual, usual, 24)
    assert made is not None
    assert made.came == pytest.approx(2.0)
    assert (made.low, made.high) == (pytest.approx(2.0 / 1.1), pytest.approx(2.2))  # no two events are the same
    assert not made.is_within
    written = dict(part.split(" = ") for part in made.propose(is_rate=False).split(", "))
    event = {**{key: float(value) for key, value in written.items()}, "jobs": ["prod/orders"]}
    event |= {"starts_at": "2026-12-04T08:00:00Z", "ends_at": "2026-12-04T20:00:00Z"}
    check_settings({"events": {"next": event}})  # what is proposed can be written


def test_an_event_that_varied_is_proposed_with_a_wider_range() -> None:
    usual = np.full(24, 100.0)
    made = judge_event(SALE, usual * np.where(np.arange(24) < 12, 2.0, 4.0), usual, 24)
    assert made is not None
    assert made.is_within
    assert (made.low, made.came, made.high) == (pytest.approx(2.0), pytest.approx(3.0), pytest.approx(4.0))


def test_an_event_of_a_rate_needs_no_forecast() -> None:
    replayed = KnownEvent("replay", 0.0, 7200.0, 800.0, 1000.0, 1250.0, is_rate=True)
    made = judge_event(replayed, np.full(24, 1500.0), np.zeros(24), 24)
    assert made is not None
    assert made.propose(is_rate=True) == "rate_per_s = 1500, low = 1364, high = 1650"


def test_what_was_hardly_measured_says_nothing() -> None:
    usual = np.full(24, 100.0)
    came = np.full(24, np.nan)
    came[:5] = 300.0
    assert judge_event(SALE, came, usual, 24) is None
    assert judge_event(SALE, 300.0 + usual, 0.0 * usual, 24) is None


def rows(came: float) -> pd.DataFrame:
    starts = pd.to_datetime(np.arange(24) * 300, unit="s")
    return pd.DataFrame({"bin_start": starts, "bin_s": 300, "came_per_s": came, "usual_per_s": 100.0})


def test_the_page_says_what_was_said_what_came_and_what_to_write() -> None:
    said, came, proposal = describe_event(SALE, rows(320.0), datetime.fromtimestamp(9000, UTC))
    assert said == "3x (2.4 to 3.75)"
    assert came == "3.2x, within what was said"
    assert proposal == "factor = 3.2, low = 2.91, high = 3.52"
    _, so_far, wait = describe_event(SALE, rows(200.0).head(12), datetime.fromtimestamp(3600, UTC))
    assert (so_far, wait) == ("2x so far, outside of what was said", "it is not over")
    assert describe_event(SALE, rows(np.nan), datetime.fromtimestamp(9000, UTC))[1] == "too little of it was measured"
