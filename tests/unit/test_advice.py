"""The appraisal of a job: what ran is followed, failures happen when they did, verdicts and intervals, the page."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from fleet.frontier import FrontierPoint, PolicyCurve
from include.domain.graph import JobGraph, Operator
from include.policy_catalogue import WITHOUT_PLANS
from include.settings import Advise, Backtest, Settings
from include.short_names import shorten_text
from lab.advice import appraisal
from lab.advice.appraisal import CONSTANT, RAN, Option, replay
from lab.advice.calibration import Measured, calibrate, compare_capacity
from lab.advice.frontier import build_variants, sum_curves
from lab.advice.history import History, fill_forward
from lab.advice.verdict import Advice, Difference, describe, judge
from lab.backtest.daily_costs import DailyCosts, weigh
from lab.backtest.stretch import IsolatedDriver, Stretch
from lab.backtest.subject import BIN_S, DAY_BINS, HistoryError, Subject
from lab.replay.conditions import DecisionSchedule, Disturbances, Prices
from lab.replay.drivers import ScheduleDriver
from lab.replay.random_draws import RandomDraws
from lab.stages.advise.fleet import describe_fleet
from lab.stages.advise.job_advice import tidy
from lab.stages.advise.page import render
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.intervals import Estimate, estimate

START_S = 1_767_225_600  # 2026-01-01
DAYS, SLOTS_MAX = 4, 16
USED = (70, 80)  # percent; the tuned form aims at the latter
# The policy that is advised for, a quick one; the one that has a frontier; the one that fails.
OWN, TUNED, BROKEN = "ds2", "flink_autoscaler_tuned", "optscaler"
SHORT = Settings(
    backtest=Backtest(learning_days=0.5, history_days_min=1.0),
    advise=Advise(days=2, seeds=2, policies=(OWN, TUNED, BROKEN)),
)


def subject(days: float = DAYS) -> Subject:
    p = np.arange(1, SLOTS_MAX + 1)
    source = CapacityCurve(p, 1e6 * p, 1e3 * p, p.copy(), 1e6 * p, 1e6, noise_share=0.01)
    linear = CapacityCurve(p, 10_000.0 * p, 200.0 * p, p.copy(), 10_000.0 * p, 10_000.0, noise_share=0.01)
    models = JobModels(
        {"src": source, "map": linear},
        {"src": 1.0, "map": 1.0},
        RecoveryModel(40.0, 5.0, 90.0, 5.0, 30.0, 5),
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    graph = JobGraph((Operator("src"), Operator("map", ("src",))))
    hours = np.arange(round(days * DAY_BINS)) * BIN_S / 3600.0
    load = 50_000.0 + 40_000.0 * np.sin((hours - 8.0) * np.pi / 12.0)
    return Subject("c", "orders", graph, models, SLOTS_MAX, START_S, load[:, None])


def history(at: int = 14, failures: tuple[float, ...] = (), late_s: float = 0.0) -> History:
    """What ran at a constant parallelism, with one rescale in the last day."""
    bins = round(3.0 * DAY_BINS)
    start_s = START_S + (DAYS - 3) * 86_400
    parallelism = np.tile([1, at], (bins, 1))
    return History(
        start_s=start_s,
        parallelism=parallelism,
        slots=parallelism.max(axis=1).astype(float),
        late_s=np.full(bins, late_s),
        rescale_s=np.array([start_s + 2.5 * 86_400]),
        failure_s=np.array(failures),
        downtimes_s=np.array([38.0, 44.0]),
    )


def test_gaps_keep_what_ran_before():
    observed = np.array([[0, 3], [2, 0], [0, 0], [4, 5]])
    np.testing.assert_array_equal(fill_forward(observed), [[2, 3], [2, 3], [2, 3], [4, 5]])
    np.testing.assert_array_equal(fill_forward(np.zeros((2, 1), np.int64)), [[1], [1]])


def test_the_schedule_is_what_ran():
    ran = replace(history(), parallelism=np.array([[1, 2], [1, 2], [1, 3], [0, 0], [1, 2]]))
    times_s, parallelism = ran.schedule()
    assert ((times_s - ran.start_s) // BIN_S).tolist() == [0, 2, 4]
    assert parallelism.tolist() == [[1, 2], [1, 3], [1, 2]]


def test_known_failures_take_the_place_of_drawn_ones():
    happened = replace(Disturbances(failures_per_day=3), failure_at_s=(7000.0, 500.0, 1e9, -5.0))
    drawn = RandomDraws.from_seed(1, DAY_BINS, 2, DecisionSchedule(), happened)
    assert drawn.failure_at_s.tolist() == [500.0, 7000.0]
    assert (
        len(RandomDraws.from_seed(1, DAY_BINS, 2, DecisionSchedule(), Disturbances(failures_per_day=3)).failure_at_s)
        == 3
    )


def test_intervals_hold_the_mean_and_grow_with_the_spread():
    narrow, wide = (estimate(10.0 + width * np.arange(14.0).reshape(7, 2)) for width in (0.1, 1.0))
    for result in (narrow, wide):
        assert result.low < result.mean < result.high
    assert wide.high - wide.low == pytest.approx(10 * (narrow.high - narrow.low))
    one_day = estimate(np.array([[1.0, 3.0]]))
    assert (one_day.low, one_day.mean, one_day.high) == (1.0, 2.0, 3.0)
    assert estimate(np.full((7, 2), 4.0)).low == pytest.approx(4.0)


def test_the_interval_covers_the_mean_of_other_weeks():
    """Of 300 weeks drawn from one law, about nine in ten intervals hold its mean: somewhat fewer with seven days."""
    generator = np.random.default_rng(3)
    weeks = generator.normal(5.0, 2.0, (300, 7, 1))
    held = np.mean([result.low <= 5.0 <= result.high for result in map(estimate, weeks)])
    assert 0.75 <= held <= 0.95


def test_costs_are_slot_hours_that_cost_as_much():
    result = weigh(np.array(24.0), np.array(10.0), np.array(2.0), Prices(slots=0.2, late=0.4, rescale=0.4), 16)
    # A slot-hour costs 60 * 0.2 / 16 = 0.75, a late minute or a rescale 0.4.
    assert float(result) == pytest.approx(24.0 + 12.0 * 0.4 / 0.75)


def quick_variants(*of: Any) -> Any:
    """Return two points of the policy that takes the least time, and one that fails."""
    wanted = {(TUNED, f"aims at {n}% used") for n in USED}
    quick = {key: one for key, one in build_variants(*of).items() if key in wanted}
    return quick | {(TUNED, "fails"): IsolatedDriver(ScheduleDriver(np.zeros(1, np.int64), ("src",), None))}


@pytest.fixture(scope="module")
def wasteful() -> Any:
    """A job that runs with half as many slots again as its peak needs, beside policies of which one fails."""
    ran, real = history(failures=(START_S + 2.75 * 86_400,)), Stretch.isolate

    def broken(stretch: Stretch, name: str) -> Any:
        return "no such thing" if name == BROKEN else real(stretch, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stretch, "isolate", broken)
        patch.setattr(appraisal, "build_variants", quick_variants)
        return ran, replay(subject(), ran, SHORT)


def test_what_ran_is_replayed_as_it_was(wasteful):
    _, result = wasteful
    assert [one.name for one in result.options] == [RAN, OWN, TUNED, BROKEN, CONSTANT]
    assert result.spans.days == 2
    costs = result.options[0].costs
    np.testing.assert_allclose(costs.slot_hours, 14 * 24)
    assert costs.rescales.sum() == 0  # the parallelism never changed
    assert costs.slot_hours.shape == (2, 2)
    assert costs.late_minutes[0].min() > 0  # the failure of 18:00, from which every row recovers
    np.testing.assert_allclose(costs.late_minutes[1], 0)
    own = result.options[1].costs
    assert own.slot_hours.mean() < 0.75 * 14 * 24
    constant = result.options[-1]
    assert constant.costs.cost.mean() <= costs.cost.mean()
    assert "map" in constant.detail
    assert len(result.options[1].slots) == 48


def test_the_points_of_a_frontier_meet_the_same_load_as_the_options(wasteful):
    _, result = wasteful
    (curve,), option = result.curves, result.options[2]
    assert (curve.policy, [one.label for one in curve.points]) == (TUNED, [f"aims at {n}% used" for n in USED])
    slots = [one.slot_hours for one in curve.points]
    assert slots == sorted(slots, reverse=True)
    same = curve.points[1]
    first = {name: getattr(option.costs, name)[:, 0].mean() for name in ("slot_hours", "late_minutes", "rescales")}
    assert {name: getattr(same, name) for name in first} == pytest.approx(first, abs=0.001)


def test_a_frontier_has_the_named_goals_and_the_headroom_of_others():
    made = build_variants(SHORT.planner, {})
    weights = {key: one.driver.changed.get("costs.late_weight") for key, one in made.items()}
    goals = {label: weight for (name, label), weight in weights.items() if name == "programme"}
    assert goals == pytest.approx({"cheap": 0.1, "balanced": 0.4, "on_time": 1.6})
    assert {name for name, _ in made} == {"programme", TUNED}
    assert [label for name, label in made if name == TUNED] == [f"aims at {n}% used" for n in (70, 80, 90)]


def test_jobs_are_summed_over_the_points_that_all_have():
    def curve(*labels: str) -> PolicyCurve:
        return PolicyCurve("programme", "Tidewise", tuple(FrontierPoint(one, 10.0, 2.0, 1.0) for one in labels))

    assert sum_curves([[curve("cheap", "on_time")], [curve("cheap")]]) == (
        PolicyCurve("programme", "Tidewise", (FrontierPoint("cheap", 20.0, 4.0, 2.0),)),
    )
    assert sum_curves([[curve("cheap")], [curve("on_time")]]) == sum_curves([]) == ()


def test_calibration_compares_what_was_measured(wasteful):
    ran, result = wasteful
    measured = [Measured("map", 14, 140_000.0, 50), Measured("map", 3, 24_000.0, 9), Measured("gone", 1, 5.0, 1)]
    made = calibrate(subject(), ran, result, measured)
    assert made.costs.slot_hours == pytest.approx(made.costs.slot_hours_came)
    assert made.costs.late_minutes > made.costs.late_minutes_came == 0.0
    assert made.costs.measured_share == 1.0
    assert made.capacity_points == 2
    assert made.capacity_error == pytest.approx((0.0 + 0.25) / 2)
    assert made.capacity_inside == 0.5
    assert made.load_error < 0.05
    assert made.load_below_q90 > 0.7
    assert (made.downtime_s, made.downtime_came_s, made.rescales) == (40.0, 41.0, 2)


def test_late_time_that_came_is_counted(wasteful):
    ran, result = wasteful
    half = np.where(np.arange(len(ran.late_s)) % 2 == 0, 60.0, np.nan)
    made = calibrate(subject(), replace(ran, late_s=half), result, [])
    assert made.costs.measured_share == 0.5
    assert made.costs.late_minutes_came == pytest.approx(DAY_BINS)  # a minute of every bin that was measured
    assert compare_capacity(subject(), [])[2] == 0


def test_what_was_never_measured_has_no_cost(wasteful):
    ran, result = wasteful
    unknown = calibrate(subject(), replace(ran, late_s=np.full(len(ran.late_s), np.nan)), result, []).costs
    assert unknown.measured_share == 0.0
    assert np.isnan([unknown.cost, unknown.cost_came, unknown.slot_hours_came, unknown.late_minutes_came]).all()


def test_less_than_a_day_is_too_short_to_appraise():
    short = SHORT.model_copy(update={"backtest": Backtest(learning_days=0.1, history_days_min=0.5)})
    with pytest.raises(HistoryError, match="no whole day"):
        replay(subject(0.9), history(), short)


def test_a_policy_that_fails_fails_alone(wasteful):
    options = {one.name: one for one in wasteful[1].options}
    assert options[BROKEN].costs is None
    assert "no such thing" in options[BROKEN].detail
    assert all(one.costs is not None for name, one in options.items() if name != BROKEN)
    assert judge(list(options.values())).saving is not None


def costs(level: float, spread: float = 0.02, late: float = 0.0) -> DailyCosts:
    days = level * (1.0 + spread * np.linspace(-1, 1, 14).reshape(7, 2))
    return DailyCosts(days, np.full((7, 2), late), np.zeros((7, 2)), days + late)


@pytest.mark.parametrize(
    ("ran", "mine", "other", "advice", "says"),
    [
        (100.0, 60.0, 80.0, Advice.TAKE, "save 40.0 slot-hours a day"),
        (100.0, 60.0, 50.0, Advice.OTHER, "17% less than Tidewise. Against what ran Tidewise still saves"),
        (60.0, 100.0, 120.0, Advice.KEEP, "What ran cost less"),
        (60.0, 100.0, 50.0, Advice.OTHER, "does not surely save"),
        (100.0, 100.0, 120.0, Advice.OPEN, "do not tell"),
        (100.0, 60.0, 59.9, Advice.TAKE, "save"),  # nearly as cheap is as good
    ],
)
def test_verdicts(ran: float, mine: float, other: float, advice: Advice, says: str):
    zeros = np.zeros(0)
    options = [
        Option(RAN, costs(ran), zeros),
        Option("planner", costs(mine), zeros),
        Option("flink_autoscaler", costs(other), zeros),
    ]
    result = judge(options)
    assert result.advice is advice
    assert says in result.sentence
    assert result.advice.is_against == (advice in {Advice.OTHER, Advice.KEEP})


def test_a_day_or_two_tell_nothing_for_sure():
    def day(level: float) -> DailyCosts:
        return DailyCosts(*(np.full((2, 2), level) for _ in range(4)))

    result = judge([Option(RAN, day(100.0), np.zeros(0)), Option("planner", day(10.0), np.zeros(0))])
    assert result.advice is Advice.OPEN
    assert "So few days (2)" in result.sentence
    assert "save 90.0 slot-hours" in result.sentence


def test_a_rival_that_is_cheaper_is_named_and_the_same_policy_without_plans_is_none():
    zeros = np.zeros(0)
    levels = {RAN: 100.0, "programme": 60.0, WITHOUT_PLANS: 40.0, "planner": 50.0}
    options = [Option(name, costs(level), zeros) for name, level in levels.items()]
    assert (judge(options).advice, judge(options).better) == (Advice.OTHER, "planner")
    assert (judge(options[:-1]).advice, judge(options[:-1]).better) == (Advice.TAKE, None)


def test_savings_and_their_price_are_told_apart():
    def saving(slots: float, late: float, rescales: float) -> Difference:
        return Difference(*(Estimate(value, value, value) for value in (0.0, slots, late, rescales)))

    assert (
        describe(saving(12.0, -0.3, 4.0)) == "save 12.0 slot-hours and 4.0 rescales a day, with 0.3 more late minutes"
    )
    assert (
        describe(saving(-1.0, -2.0, -3.0))
        == "take 1.0 more slot-hours, 2.0 more late minutes and 3.0 more rescales a day"
    )
    assert describe(saving(0.01, 0.0, -0.02)) == "change nothing"


def test_a_policy_without_figures_gives_no_verdict():
    result = judge([Option(RAN, costs(1.0), np.zeros(0)), Option("planner", None, np.zeros(0), "it broke")])
    assert (result.advice, result.saving) == (Advice.OPEN, None)
    assert "it broke" in result.sentence


NASTY = "<script>alert('x')</script> & \"Bücher\" \u202e {{ 7*7 }}"


def advice_of(names: list[str], found: Any) -> dict[str, Any]:
    """Return what the stage gives to the page, of jobs that are alike."""
    from lab.stages.advise import job_advice

    ran, replayed = found
    verdict = judge(replayed.options)
    rows = []
    for name in names:
        made = {
            "days": replayed.spans.days,
            "first_s": replayed.first_s,
            "slots_max": SLOTS_MAX,
            "load": job_advice.describe_load(subject(), replayed.spans.days),
            "ran": job_advice.describe_ran(ran, replayed),
            "options": [job_advice.describe_option(replayed, place) for place in range(len(replayed.options))],
            "calibration": asdict(calibrate(subject(), ran, replayed, [])),
            "verdict": asdict(verdict) | {"is_against": verdict.advice.is_against},
            "curves": [asdict(one) for one in replayed.curves],
        }
        rows.append(
            {"cluster": "prod", "job": name, "skipped": float("nan"), "why": None, "appraisal": json.dumps(tidy(made))}
        )
    rows.append(
        {"cluster": "prod", "job": NASTY, "skipped": "no_model", "why": "nothing <b>", "appraisal": float("nan")}
    )
    made = {
        "as_of": "2026-01-05T00:00:00Z",
        "first": "2026-01-03T00:00:00Z",
        "days": replayed.spans.days,
        "code_version": "0.1.0",
        "model_version": "m0",
        "history": {"first": "a", "last": "b"},
    }
    return describe_fleet(made, rows, SHORT)


def test_totals_are_sums_over_jobs(wasteful):
    advice = advice_of(["one", "two"], wasteful)
    by_name = {row["name"]: row for row in advice["totals"]}
    assert by_name[RAN]["slots"] == pytest.approx(28.0)
    assert by_name[RAN]["money_per_month"]["mean"] == pytest.approx(28 * 24 * 30 * 0.05)
    saved = by_name[OWN]["money_saved_per_month"]
    alone = advice["jobs"][0]["verdict"]["saving"]["slot_hours"]["mean"]
    assert saved["mean"] == pytest.approx(2 * alone * 30 * 0.05, rel=1e-3)
    assert saved["low"] <= saved["mean"] <= saved["high"]
    assert [one["skipped"] for one in advice["skipped"]] == ["no_model"]


def test_the_page_is_one_file_that_runs_nothing(wasteful, tmp_path):
    advice = advice_of([NASTY, "plain"], wasteful)
    beside = SHORT.model_copy(update={"paths": SHORT.paths.model_copy(update={"out": str(tmp_path)})})
    page = render(advice, beside)
    assert render(advice, beside) == page
    assert "report.html" not in page
    assert page.count('class="dots c0"') == 3  # all together, and each job
    (tmp_path / "report.html").write_text("the fleet")
    assert '<a href="report.html">' in render(advice, beside)
    assert "<script" not in page
    shown = html.escape(shorten_text(NASTY, 1000), quote=True)
    assert shown.replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page
    assert "49" not in re.findall(r"\{\{.*?\}\}", page)
    assert "default-src 'none'" in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import|http-equiv=.refresh|\son\w+=", page)
    assert {link[1:] for link in links} <= set(re.findall(r'id="([^"]+)"', page))
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(drawing)


def test_jobs_that_it_advises_against_come_first(wasteful):
    advice = advice_of(["a", "b", "c"], wasteful)
    against = next(job for job in advice["jobs"] if job["job"] == "c")
    against["verdict"] |= {"advice": "keep", "is_against": True, "sentence": "What ran cost less."}
    rows = [
        {"cluster": job["cluster"], "job": job["job"], "skipped": None, "why": None, "appraisal": json.dumps(job)}
        for job in advice["jobs"]
    ]
    made = {key: advice[key] for key in ("as_of", "first", "days", "code_version", "model_version", "history")}
    again = describe_fleet(made, rows, SHORT)
    assert [job["job"] for job in again["jobs"]] == ["c", "a", "b"]
    page = render(again, SHORT)
    first = page.index("Where Tidewise advises against itself")
    assert first < page.index("What ran cost less.") < page.index("All jobs together")


def test_a_fleet_without_any_job_has_a_page():
    made = {"as_of": "2026-01-05T00:00:00Z", "first": "2026-01-03T00:00:00Z", "days": 2, "code_version": "x"}
    made |= {"model_version": "m", "history": {"first": None, "last": None}}
    advice = describe_fleet(made, [], SHORT)
    assert advice["totals"] == []
    assert "What Tidewise would save" in render(advice, SHORT)
