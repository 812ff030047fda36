"""Late minutes, slot-hours, backlog and recovery from readings whose figures are known by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks.live.measures import Prices, Reading, RunSpan, fill_gaps, measure

PRICES = Prices(late_after_s=60.0, resource_weight=0.2, late_weight=0.4, rescale_weight=0.4)
STEADY = [(0, 100.0), (10_000, 100.0)]
NAN = math.nan


def up(at_s: float, *, age_s: float = 0.5, pending: float = 0.0, slots: int = 4, wanted: int = 4) -> Reading:
    return Reading(at_s, True, slots, (wanted, wanted), pending, age_s, NAN)


def down(at_s: float, wanted: int = 4) -> Reading:
    return Reading(at_s, False, 0, (wanted, wanted), NAN, NAN, NAN)


def span(end_s: float, lost_at_s: float | None = None) -> RunSpan:
    return RunSpan(STEADY, (0.0, end_s), lost_at_s, 16)


def test_while_a_job_is_down_its_oldest_record_ages_and_its_backlog_grows_by_what_is_due():
    moments = fill_gaps([up(0.0, age_s=2.0, pending=50.0), down(10.0), down(15.0)], STEADY)
    assert [one.age_s for one in moments] == [2.0, 12.0, 17.0]
    assert [one.backlog for one in moments] == [50.0, 1050.0, 1550.0]
    assert [one.slots for one in moments] == [4, 4, 4]


def test_the_older_of_source_and_sink_counts():
    reading = Reading(0.0, True, 4, (4, 4), 0.0, 3.0, 70.0)
    assert fill_gaps([reading], STEADY)[0].age_s == 70.0


def test_a_job_that_runs_and_shows_nothing_yet_ages_on():
    shown = Reading(5.0, True, 4, (4, 4), NAN, NAN, NAN)
    assert fill_gaps([up(0.0, age_s=1.0), shown], STEADY)[1].age_s == 6.0


def test_late_minutes_count_the_time_in_which_the_oldest_record_was_older_than_the_limit():
    readings = [up(float(at), age_s=61.0 if 60 <= at < 180 else 1.0) for at in range(301)]
    assert measure(readings, span(300.0), PRICES).late_minutes == pytest.approx(2.0)


def test_a_job_that_is_down_for_three_minutes_is_late_from_the_second_minute_on():
    readings = [up(0.0, age_s=0.0), *(down(float(at)) for at in range(1, 181)), up(181.0, age_s=181.0, pending=18_100)]
    measures = measure(readings, span(181.0), PRICES)
    assert measures.late_minutes == pytest.approx((181 - 60) / 60)
    assert measures.down_s == 180.0
    assert measures.peak_backlog == 18_100
    assert measures.worked_off_s is None


def test_slot_hours_rescales_and_cost():
    readings = [up(float(at), slots=4 if at <= 1800 else 8, wanted=4 if at <= 1800 else 8) for at in range(3601)]
    measures = measure(readings, span(3600.0), PRICES)
    assert measures.slot_hours == pytest.approx(6.0)
    assert measures.rescales == 1
    assert measures.cost == pytest.approx(0.2 * 60 * 6 / 16 + 0.4)


def test_the_lead_before_the_span_does_not_count():
    readings = [up(0.0, age_s=500.0, wanted=1), up(10.0, age_s=500.0, wanted=2), up(20.0, wanted=4), up(30.0)]
    measures = measure(readings, RunSpan(STEADY, (20.0, 30.0), None, 16), PRICES)
    assert (measures.late_minutes, measures.rescales) == (0.0, 0)


def test_recovery_ends_when_the_backlog_after_the_loss_is_less_than_ten_seconds_of_load():
    readings = [up(0.0), up(10.0), down(11.0), down(40.0), up(41.0, pending=3100.0), up(60.0, pending=900.0), up(90.0)]
    measures = measure(readings, span(90.0, lost_at_s=10.0), PRICES)
    assert measures.recovery_s == 50.0
    assert measures.worked_off_s == 60.0 - 41.0


def test_a_job_that_has_just_restarted_and_shows_no_backlog_yet_has_not_recovered():
    restarted = [up(0.0), up(10.0), down(11.0), down(40.0), up(41.0), up(50.0, pending=20.0)]
    readings = [*restarted, up(51.0, pending=4000.0), up(200.0, pending=300.0), up(230.0), up(300.0)]
    measures = measure(readings, span(300.0, lost_at_s=10.0), PRICES)
    assert measures.recovery_s == 190.0


def test_a_backlog_that_is_still_there_at_the_end_is_not_worked_off():
    readings = [up(0.0), down(11.0), up(41.0, pending=3000.0)]
    measures = measure(readings, span(60.0, lost_at_s=10.0), PRICES)
    assert measures.recovery_s is None
