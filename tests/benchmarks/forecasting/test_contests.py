"""Contests once a day beside contests every hour: pairs of passes."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.forecasting.contests import compare_passes, list_ends
from models.forecasting import Calendar

CALENDAR = Calendar(1_772_409_600, 3600)
DAY = CALENDAR.day


def test_every_hour_of_the_last_dates_is_a_pair_and_the_first_of_a_date_has_a_contest_both_ways() -> None:
    bins = np.arange(6 * DAY)
    noise = np.random.default_rng(1).normal(0, 150, len(bins))
    rates = np.maximum(1000 + 500 * np.sin(2 * np.pi * bins / DAY) + noise, 1.0)
    with threadpool_limits(limits=1):
        pairs = list(compare_passes(rates, CALENDAR, len(rates), dates=1))
    assert len(pairs) == 24
    assert (pairs[0].is_other, pairs[0].differs_q50) == (False, 0.0)
    assert all((one.differs_q90 == 0.0) or one.is_other for one in pairs)
    assert all(0.0 < one.daily_q50 < 1.0 and 0.0 <= one.daily_covers <= 1.0 for one in pairs)


def test_a_long_trace_has_several_spans_with_history_before_each() -> None:
    assert list_ends(20 * DAY, CALENDAR) == [20 * DAY]
    assert list_ends(110 * DAY, CALENDAR) == [110 * DAY, 75 * DAY, 40 * DAY]
