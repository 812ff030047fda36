"""What came of Tidewise: rows of days and steps in, figures with intervals out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from fleet.facts import JobStatus, StepFact
from fleet.results import JobResult, Period, judge_jobs, keep_promises
from fleet.savings import describe_saving, saving_of, sum_savings
from page.rendering import render
from page.results_view import choose_period, form_results

FIRST = date(2026, 11, 10)
"""Of the job's first rescale."""
NOVEMBER = Period(date(2026, 11, 1), date(2026, 11, 20))


def day(back: int, slots: float, late: float | None = 0.0, **changes: Any) -> dict[str, Any]:
    row = {"cluster": "live", "job": "orders", "date": FIRST + timedelta(days=back), "measured_s": 86_400.0}
    row |= {"slot_hours": 24 * slots, "late_known_s": 86_400.0 if late is not None else 0.0, "late_minutes": late}
    row |= {"load_mean_per_s": 1e3, "restarts": 0, "steps_due": 2, "steps_as_planned": 1}
    return row | changes


def step(back: float = 0.0, status: str = "confirmed", **changes: Any) -> dict[str, Any]:
    at = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(days=back, hours=12)
    row = {"cluster": "live", "job": "orders", "step_id": f"{at}", "origin": "plan", "apply_at": at, "status": status}
    row |= {"effective_at": at, "ended_at": at + timedelta(hours=2), "slots_from": 10, "slots_to": 6, "slots_ran": 7.0}
    row |= {
        "load_q90_per_s": 2e3,
        "load_max_per_s": 1.5e3,
        "late_minutes_promised": 0.1,
        "late_minutes": 0.0,
        "date": at.date(),
    }
    return row | {"recovery_s": 60.0, "took_s": 90.0} | changes


def judge(days: list[dict[str, Any]], steps: list[dict[str, Any]], **more: Any) -> JobResult:
    [one] = judge_jobs(NOVEMBER, days, steps, worth_of=lambda *_: 0.5, **more)
    return one


def test_savings_are_against_the_days_before_the_first_rescale() -> None:
    days = [*(day(-back, 10) for back in range(1, 6)), day(0, 3), *(day(back, 6 + back % 2) for back in range(1, 7))]
    one = judge(days, [step(), step(1.0), step(2.0, "rolled_back"), step(3.0, "dry_run")])
    assert one.before is not None
    assert one.since is not None
    assert (one.before.count, one.before.slots, one.since.count) == (5, 10.0, 6)
    assert one.saved is not None
    assert one.saved.mean == pytest.approx(24 * 3.5)
    assert 24 * 3.0 < one.saved.low < one.saved.mean < one.saved.high < 24 * 4.0
    assert (one.rescales, one.sent["dry_run"], one.due, one.as_planned) == (3, 1, 24, 12)
    assert one.against == ()


def test_without_days_before_the_slots_of_the_first_rescale_are_compared_with() -> None:
    one = judge([day(0, 8), day(1, 6), day(2, 6)], [step()])
    assert (one.before, one.slots_before) == (None, 10)
    assert one.saved is not None
    assert one.saved.mean == pytest.approx(24 * 4.0)
    assert one.late is None  # of before nobody knows


@pytest.mark.parametrize(
    ("days", "steps"),
    [
        ([day(-1, 10), day(0, 6)], [step()]),  # no whole day since
        ([day(-1, 10), day(1, 6)], []),  # no rescale
        ([day(-1, 10), day(1, 6, measured_s=1500.0, slot_hours=2.5)], [step()]),  # a part of a day
    ],
)
def test_what_cannot_be_told_is_not_told(days: list[dict[str, Any]], steps: list[dict[str, Any]]) -> None:
    assert judge(days, steps).saved is None


def test_tidewise_advises_against_itself_where_it_costs_more_or_is_later() -> None:
    before = [day(-back, 4, late=1.0 + back % 2) for back in range(1, 6)]
    after = [day(back, 8 + back % 2, late=20.0 + back) for back in range(1, 7)]
    worse = judge([*before, *after], [step()])
    assert worse.against == (
        "it takes 108.0 slot-hours a day more than before and is late for 21.9 minutes a day more: "
        "together worth 75.9 late minutes a day more",
    )
    cheaper = [day(back, 2, late=5.0) for back in range(1, 7)]  # 48 slot-hours a day for 3.4 late minutes
    assert judge([*before, *cheaper], [step()]).against == ()
    unknown = [row | {"late_known_s": 0.0} for row in after]
    assert judge([*before, *unknown], [step()]).against == ("it takes 108.0 slot-hours a day more than before",)
    compared = {"cluster": "live", "job": "orders", "as_of": datetime(2026, 11, 19, tzinfo=UTC), "policy": "ds2"}
    rows = [compared | {"recommended": True, "in_use": False}]
    [one] = judge(before, [], backtests=rows, advice={("live", "orders"): "what ran is cheaper"}).against[:1]
    assert one == "by the comparison of 2026-11-19, ds2 would have been cheaper than the policy in use"
    assert judge(before, [], advice={("live", "orders"): "what ran is cheaper"}).against == ("what ran is cheaper",)
    assert judge(before, [step(), step(1, "failed"), step(1.1, "failed")]).against == (
        "2 of its rescales failed or were taken back, 1 stayed",
    )


def test_jobs_that_tidewise_advises_against_come_first() -> None:
    good = [day(-1, 10), day(1, 2)]
    bad = [row | {"job": "zz"} for row in (day(-1, 2), day(-2, 2), day(1, 9), day(2, 9))]
    jobs = judge_jobs(NOVEMBER, [*good, *bad], [step(), step() | {"job": "zz"}], worth_of=lambda *_: None)
    assert [one.job for one in jobs] == ["zz", "orders"]


def test_promises_are_kept_or_not() -> None:
    kept = keep_promises(
        [step(), step(late_minutes_promised=3.3, late_minutes=4.0, load_max_per_s=3e3), step(late_minutes=None)]
    )
    assert (kept.steps, kept.late_minutes, kept.late_of, kept.above_q90, kept.load_of) == (3, 4.0, 2, 1, 3)
    assert kept.late_minutes_promised == pytest.approx(3.4)
    assert (kept.slot_hours, kept.slot_hours_came) == (24.0, 18.0)
    assert (kept.recovery_s, kept.took_s) == (60.0, 90.0)
    assert keep_promises([]).late_of == 0


def test_a_month_ends_today_at_most() -> None:
    today = date(2026, 11, 20)
    assert choose_period("2026-11", today) == NOVEMBER
    assert choose_period("2026-02", today) == Period(date(2026, 2, 1), date(2026, 2, 28))
    assert choose_period("soon", today) == Period(date(2026, 10, 22), today)


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        (
            ["dry_run", "dry_run", "refused"],
            "<b>–</b>rescales ran as requested<small>nothing was sent: 2 steps in dry run",
        ),
        (
            ["dry_run", "failed"],
            "<b>0</b>rescales ran as requested<small>0 taken back, 1 failed, 0 refused, 1 in dry run",
        ),
        (["dry_run", "confirmed"], "<b>1</b>rescales ran as requested"),
    ],
)
def test_what_steps_in_dry_run_would_have_come_to_is_not_zero_but_unknown(statuses: list[str], shown: str) -> None:
    steps = [step(0.1 * place, status) for place, status in enumerate(statuses)]
    view = form_results(NOVEMBER, [day(0, 4), day(1, 4)], steps, [], advice=None, price=None, worth_of=lambda *_: 0.5)
    assert shown in render("results_content.html.j2", results=view, at="", month="")


def test_the_fleet_is_the_sum_of_its_jobs() -> None:
    days = [day(-1, 10), day(-2, 10), *(day(back, 6) for back in range(1, 5))]
    others = [row | {"job": "other"} for row in days]
    view = form_results(
        NOVEMBER,
        [*days, *others],
        [step(), step() | {"job": "other"}],
        [],
        advice=None,
        price=None,
        worth_of=lambda *_: 0.5,
    )
    assert view.saved is not None
    assert (view.saved.mean, view.before, view.measured, view.rescales) == (2 * 96.0, 480.0, 2, 2)
    assert view.months == ("2026-11",)


def plan_step(begin_h: float, end_h: float, slots: int | None) -> StepFact:
    texts, none = ("live", "orders", "s"), (None,) * 9
    times = (0.0, 3600 * begin_h, 3600 * begin_h, 3600 * end_h)
    return StepFact(*texts, *times, {}, {}, 10, slots, *none[:7], None, "planner", "", "")


def test_a_plan_saves_against_the_mean_of_the_last_weeks_and_says_the_late_minutes_of_both() -> None:
    job = JobStatus("live", "orders", "auto", "RUNNING", 10, None, None, "planned", "", 0.0)
    steps = (replace(plan_step(0, 24, 4), late_minutes=1.4),)
    facts = JobStatus(*(getattr(job, name) for name in job.__slots__[:10]), steps=steps)
    weeks = [day(back, 8, late) | {"until": at(back)} for back, late in ((1, 10.0), (2, 30.0))]
    today_s = at(3).timestamp()
    moved = replace(facts, steps=tuple(_later(one, today_s) for one in steps))
    one = saving_of(moved, today_s, [*weeks, day(-30, 90, 0.0) | {"until": at(-30)}])
    assert one is not None
    assert (one.slot_hours, one.of_slot_hours, one.is_of_weeks) == (96.0, 192.0, True)
    assert (one.late_minutes, one.late_minutes_before) == (1.4, 20.0)
    text = describe_saving(one, "5 EUR")
    assert text.startswith("96.0 of 192 slot-hours fewer (\u221250%) than the mean of the last weeks, 5 EUR, until ")
    assert text.endswith("; 1 late minute expected, 20 before")
    both = sum_savings([one, replace(one, late_minutes=None, late_minutes_before=None)])
    assert both is not None
    assert (both.slot_hours, both.late_minutes, both.late_minutes_before) == (192.0, 1.4, 20.0)


def at(back: int) -> datetime:
    return datetime.combine(FIRST + timedelta(days=back), datetime.min.time(), UTC)


def _later(step: StepFact, by_s: float) -> StepFact:
    moved = {name: by_s + getattr(step, name) for name in ("apply_at_s", "effective_at_s", "valid_until_s")}
    return replace(step, **moved)


def test_a_plan_saves_against_what_runs_now_and_not_against_the_step_before() -> None:
    job = JobStatus("live", "orders", "auto", "RUNNING", 10, None, None, "planned", "", 0.0)
    steps = (plan_step(0, 2, 4), plan_step(2, 6, 12))
    facts = JobStatus(*(getattr(job, name) for name in job.__slots__[:10]), steps=steps)
    one = saving_of(facts, 3600.0)
    assert one is not None
    assert (one.slot_hours, one.of_slot_hours, one.until_s) == (6 - 8, 50.0, 6 * 3600)
    assert describe_saving(one) == "2.0 of 50 slot-hours more (+4%) than with what runs now, until Thu 06:00Z"
    assert sum_savings([one, one]) is not None
    whole = saving_of(facts, 3600.0, (), 8)  # 16 slots are paid now, then 8 and 16
    assert whole is not None
    assert (whole.slot_hours, whole.of_slot_hours) == (8.0, 80.0)
    unknown = JobStatus(*(getattr(job, name) for name in job.__slots__[:10]), steps=(plan_step(0, 2, None),))
    assert saving_of(unknown, 0.0) is None
    assert saving_of(job, 0.0) is None
    assert sum_savings([]) is None
