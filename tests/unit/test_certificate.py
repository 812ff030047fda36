"""A job's certificate: what ran beside the least for the load that came, in an interval, with the reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.settings import Backtest, Settings
from lab.advice.certificate import (
    Certificate,
    DayCost,
    NotMeasuredError,
    certify,
    explain_regret,
    measure_ran,
    shift_capacities,
)
from lab.advice.history import History
from lab.backtest.stretch import Stretch
from lab.backtest.subject import BIN_S, DAY_BINS, HistoryError, Subject
from lab.replay.conditions import Prices
from tests.unit.test_backtest import START_S, subject

SETTINGS = Settings(backtest=Backtest(days=1, learning_days=0.0, history_days_min=0.5))


def small(days: float = 1.0) -> Subject:
    """A job of eight slots, of which its peak needs 3.4 and its night a half; capacities known to 10%."""
    whole = subject(days)
    curves = {
        name: replace(one, mean_per_s=3.0 * one.mean_per_s, sd_per_s=0.1 * 3.0 * one.mean_per_s)
        for name, one in whole.models.capacity.items()
    }
    return replace(whole, slots_max=8, models=replace(whole.models, capacity=curves))


def ran(slots: float, late_s: float = 0.0, rescales: int = 0, bins: int = DAY_BINS) -> History:
    parallelism = np.full((bins, 2), round(slots), np.int64)
    at_s = START_S + 3600.0 * np.arange(1, rescales + 1)
    late = np.full(bins, late_s)
    return History(START_S, parallelism, np.full(bins, float(slots)), late, at_s, np.zeros(0), np.zeros(0))


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """Of a job that ran at all of its slots."""
    return certify(small(), ran(8), SETTINGS)


def test_a_job_that_ran_at_all_of_its_slots_cost_more_slots_than_it_needed(certificate: Certificate) -> None:
    made = certificate
    assert (made.days, made.measured_share) == (1, 1.0)
    assert made.ran.cost == pytest.approx(0.2 * 1440)  # all slots for a day
    assert 1.0 < made.ratio_low < made.ratio < made.ratio_high
    assert made.least_low < made.least < made.least_high
    assert made.least <= made.best.cost < 1.05 * made.least  # the bound's own choices cost hardly more
    assert made.best.slot_hours < 70.0
    more = made.ran.slot_hours - made.best.slot_hours
    assert made.reason == f"{more:.1f} more slot-hours a day than the load needed: 100% of what it cost more"
    assert made.regret == pytest.approx(made.ran.cost - made.least)


def test_lateness_is_the_reason_where_it_costs_most(certificate: Certificate) -> None:
    late, share = measure_ran(ran(3, late_s=120.0, rescales=2), Stretch.of(small(), 0, SETTINGS), 1)
    assert (late.late_minutes, late.rescales, share) == (2 * DAY_BINS, 2, 1.0)
    assert "more late minutes a day" in explain_regret(replace(certificate, ran=late))


def test_what_was_not_measured_makes_no_certificate() -> None:
    gaps = ran(8)
    gaps.slots[: DAY_BINS // 2 + 9] = np.nan
    with pytest.raises(NotMeasuredError, match="known of 47% of the time"):
        certify(small(), gaps, SETTINGS)
    with pytest.raises(HistoryError, match="no whole day"):
        certify(small(0.9), ran(8), SETTINGS)
    later = replace(ran(8), start_s=START_S + BIN_S)
    with pytest.raises(NotMeasuredError, match="from the first"):
        certify(small(), later, SETTINGS)


def test_a_day_of_what_was_measured_counts_where_a_part_was_not() -> None:
    gaps = ran(8)
    gaps.slots[:100] = np.nan
    measured, share = measure_ran(gaps, Stretch.of(small(), 0, SETTINGS), 1)
    assert share == pytest.approx(188 / 288)
    assert measured.slot_hours == pytest.approx(8 * 24)


def day(slot_hours: float, late: float = 0.0, rescales: float = 0.0) -> DayCost:
    return DayCost.of(slot_hours, late, rescales, Prices(), 8)


@pytest.mark.parametrize(
    ("ran_at", "least", "says"),
    [
        (day(100.0), 148.0, ""),
        (day(100.0), 200.0, "its models take it for slower than it is"),
        (day(100.0, late=300.0, rescales=4.0), 90.0, "300.0 more late minutes a day"),
        (day(100.0, rescales=90.0), 120.0, "90.0 more rescales a day"),
        (day(80.0), 90.0, "between them and the bound"),
    ],
)
def test_reasons(ran_at: DayCost, least: float, says: str) -> None:
    made = Certificate(7, 1.0, ran_at, day(90.0), least, 0.9 * least, 1.1 * least, "")
    reason = explain_regret(made)
    assert says in reason
    assert bool(says) == bool(reason)


def test_capacities_are_shifted_by_what_is_not_known_of_them() -> None:
    models = small().models
    shifted = shift_capacities(models, -1.0)
    assert shifted.capacity["map"].mean_per_s == pytest.approx(0.9 * models.capacity["map"].mean_per_s)
    assert shift_capacities(models, 0.0) is models
