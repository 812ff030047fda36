"""Policies replayed on a job's own history: gaps, spans, the recommendation, and a policy that fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.policy_catalogue import WITHOUT_PLANS
from include.settings import Backtest, Settings
from lab.backtest import stretch
from lab.backtest.comparison import Result, Spans, compare, recommend
from lab.backtest.subject import BIN_S, DAY_BINS, HistoryError, Subject
from lab.replay.forecasts import LoadForecast
from lab.replay.rate_series import fill_gaps, interpolate_steps
from lab.replay.scores import Score
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.forecasting.batch import default_registry

START_S = 1_767_225_600  # 2026-01-01
SHORT = Settings(backtest=Backtest(days=1, learning_days=1.0, history_days_min=1.5))


def day_and_night(days: float) -> np.ndarray:
    hours = np.arange(round(days * DAY_BINS)) * BIN_S / 3600.0
    return 60_000.0 + 40_000.0 * np.sin((hours - 8.0) * np.pi / 12.0)


def subject(days: float = 3.0) -> Subject:
    p = np.arange(1, 33)
    source = CapacityCurve(p, 1e6 * p, 0.0 * p, p.copy(), 1e6 * p, 1e6)
    linear = CapacityCurve(p, 10_000.0 * p, 0.0 * p, p.copy(), 10_000.0 * p, 10_000.0)
    models = JobModels(
        {"src": source, "map": linear},
        {"src": 1.0, "map": 1.0},
        RecoveryModel(40.0, 5.0, 90.0, 5.0, 30.0, 5),
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    graph = JobGraph((Operator("src"), Operator("map", ("src",))))
    return Subject("c", "orders", graph, models, 32, START_S, day_and_night(days)[:, None])


def test_short_gaps_are_joined_and_long_ones_taken_from_another_day() -> None:
    whole = day_and_night(3)
    measured = whole.copy()
    measured[100:103] = np.nan  # a quarter of an hour
    measured[400:440] = np.nan  # hours: the day before knows
    measured[10:30] = np.nan  # hours on the first day: the day after knows
    filled = fill_gaps(measured, BIN_S)
    np.testing.assert_allclose(filled[100:103], np.interp([100, 101, 102], [99, 103], whole[[99, 103]]))
    np.testing.assert_allclose(filled[400:440], whole[400:440])
    np.testing.assert_allclose(filled[10:30], whole[10:30])
    assert np.array_equal(filled[np.isfinite(measured)], whole[np.isfinite(measured)])


def test_a_gap_of_two_days_repeats_the_day_before() -> None:
    whole = day_and_night(5)
    measured = whole.copy()
    measured[DAY_BINS : 3 * DAY_BINS] = np.nan
    np.testing.assert_allclose(fill_gaps(measured, BIN_S), whole)


def test_steps_lie_on_the_line_between_the_middles_of_bins() -> None:
    steps = interpolate_steps(np.array([[10.0], [20.0], [30.0]]), 300, 100)
    assert steps.shape == (9, 1)
    np.testing.assert_allclose(steps[[1, 4, 7], 0], [10.0, 20.0, 30.0])
    np.testing.assert_allclose(steps[2, 0], 10.0 + 10.0 / 3.0)


def test_a_long_history_is_known_learned_from_and_scored() -> None:
    settings = Settings()
    options = settings.backtest
    spans = Spans.of(START_S, 28 * DAY_BINS, settings)
    assert spans.scored == options.days * DAY_BINS
    assert spans.learning == options.learning_days * DAY_BINS
    assert spans.before + spans.learning + spans.scored == 28 * DAY_BINS


def test_a_short_history_gives_a_third_to_learning() -> None:
    spans = Spans.of(START_S, 3 * DAY_BINS, Settings())
    assert (spans.before, spans.learning, spans.scored) == (0, DAY_BINS, 2 * DAY_BINS)


def test_the_replay_begins_on_a_full_hour() -> None:
    spans = Spans.of(START_S + 4 * BIN_S, 3 * DAY_BINS, Settings())
    assert spans.before == 8
    assert sum((spans.before, spans.learning, spans.scored)) == 3 * DAY_BINS


def test_too_little_history_is_refused_with_its_length() -> None:
    with pytest.raises(HistoryError, match=r"1\.0 days of history"):
        Spans.of(START_S, DAY_BINS, Settings())


def result(policy: str, cost: float | None) -> Result:
    score = None if cost is None else Score(1.0, 0.0, 0.0, 10.0, cost)
    return Result(policy, score, "failed" if cost is None else None)


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ({"ds2": 100.0, "planner": 90.0}, "planner"),
        ({"ds2": 100.0, "planner": 99.5}, "ds2"),  # below 1%: what is in use stays
        ({"ds2": 100.0, "planner": 100.0}, "ds2"),
        ({"ds2": 100.0, "clairvoyant": 50.0, "static_max": 60.0, "static_mean": 55.0, WITHOUT_PLANS: 50.0}, "ds2"),
        ({"ds2": None, "planner": 100.0}, "planner"),
        ({"ds2": None, "planner": None}, None),
    ],
)
def test_the_cheapest_is_recommended_unless_the_one_in_use_is_as_good(
    costs: dict[str, float | None], best: str | None
) -> None:
    assert recommend([result(name, cost) for name, cost in costs.items()], "ds2", 0.01) == best


def test_policies_are_compared_and_a_failing_one_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def first_memory(self) -> None:
            return None

        def tick(self, snapshot: Any, memory: None) -> Any:
            raise RuntimeError("no such thing")

    real = stretch.build_candidates

    def some_broken(chosen: Any, workload: Any, conditions: Any) -> Any:
        made = real(chosen, workload, conditions)
        return [replace(one, driver=Broken()) if one.name == "ds2" else one for one in made]

    monkeypatch.setattr(stretch, "build_candidates", some_broken)
    spans, results = compare(subject(), ["ds2", "reactive", "static_max", "clairvoyant"], SHORT)
    matched = {one.policy: one for one in results}
    assert spans.before == DAY_BINS
    assert matched["ds2"].score is None
    assert "no such thing" in str(matched["ds2"].error)
    scores = {name: one.score for name, one in matched.items() if one.score is not None}
    assert scores.keys() == {"reactive", "static_max", "clairvoyant"}
    assert scores["static_max"].rescales_per_day == 0
    assert scores["static_max"].slot_hours == pytest.approx(24 * 32)
    assert scores["clairvoyant"].cost < min(scores["static_max"].cost, scores["reactive"].cost)
    again = {one.policy: one.score for one in compare(subject(), ["reactive"], SHORT)[1]}
    assert again["reactive"] == scores["reactive"]  # with other policies or without


def test_forecasts_of_a_later_beginning_know_what_came_before() -> None:
    rates = day_and_night(5)[:, None]
    options = SHORT.forecast
    later = LoadForecast(["src"], START_S, rates, 3600, options, 4 * DAY_BINS, default_registry())
    assert later.at(4 * DAY_BINS - 1) is None
    made = later.at(4 * DAY_BINS + 12)
    assert made is not None
    assert made.fallback is None
    assert made.start_s == START_S + 4 * 86_400 + 3600
    np.testing.assert_allclose(made.quantiles["src"][1][:100], rates[4 * DAY_BINS + 12 :][:100, 0], rtol=0.05)
    cold = LoadForecast(["src"], START_S + 4 * 86_400, rates[4 * DAY_BINS :], 3600, options).at(12)
    assert cold is not None
    assert cold.fallback is not None
