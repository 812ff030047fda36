"""The gate: what it compares, with what, and that it never locks."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pipeline.packed_models import pack_models
from include.settings import Training
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from models.training.gate import LEAST_ROWS, Criterion, Gate, Verdict, compare, judge, warn_of_errors
from models.training.job_tests import LEAST_S, find_since
from spark_jobs.train.forecast_scores import CHAMPIONS
from spark_jobs.train.forward_scores import ForwardScores, capacity_errors
from spark_jobs.train.gate_criteria import list_criteria
from spark_jobs.train.gate_plot import gate_figure, gate_table

HOUR = timedelta(hours=1)
AS_OF = datetime(2026, 11, 20, tzinfo=UTC)
NO_FORECASTS = pd.DataFrame(columns=["date", "method", "pinball_q90"])


def held(error: float, champion: float = math.nan, linear: float = math.nan, *, idle: bool = False) -> pd.DataFrame:
    inside = math.nan if math.isnan(champion) else 1.0
    row = {"error": error, "champion_error": champion, "linear_error": linear, "inside": 1.0, "idle": idle}
    return pd.DataFrame([row | {"champion_inside": inside}] * 50)


def nothing_held() -> pd.DataFrame:
    return held(0.0).iloc[:0]


NO_LATENCY = pd.DataFrame({"error": [], "champion_error": []})


def verdict(
    capacity: pd.DataFrame, *, has_champion: bool, forward: ForwardScores | None = None, knows: int = 1
) -> Gate:
    criteria = list_criteria(
        capacity,
        NO_LATENCY,
        forward or ForwardScores.none(),
        NO_FORECASTS,
        has_champion=has_champion and knows > 0,
        tolerance=0.02,
    )
    return judge(criteria, has_champion=has_champion, champion_knows=knows)


def forward(place: str, error: float, champion: float, rows: int = 50) -> ForwardScores:
    row = {
        "hour": AS_OF,
        "idle": False,
        "place": place,
        "error": error,
        "champion_error": champion,
        "linear_error": 0.5,
    }
    return ForwardScores(AS_OF - HOUR, pd.DataFrame([row] * rows), NO_LATENCY)


@pytest.mark.covers("apply_review 22")
def test_a_first_model_has_to_beat_the_linear_model() -> None:
    assert verdict(held(0.05, linear=0.20), has_champion=False).verdict is Verdict.FIRST
    refused = verdict(held(0.30, linear=0.20), has_champion=False)
    assert refused.verdict is Verdict.FAILED
    assert "30.00% against 20.00% of the linear model on 50 rows, beyond the tolerance of 2.00%" in refused.detail


def test_a_first_model_that_nothing_was_held_back_for_is_accepted_and_known_to_be_unproven() -> None:
    first = verdict(nothing_held(), has_champion=False)
    assert (first.verdict, first.compared) == (Verdict.FIRST, 0)
    assert "its intervals are widened" in first.detail


@pytest.mark.parametrize(
    ("challenger", "champion", "wanted"),
    [(0.05, 0.05, Verdict.PASSED), (0.069, 0.05, Verdict.PASSED), (0.08, 0.05, Verdict.FAILED), (0.9, 2.0, "passed")],
)
def test_errors_are_compared_and_never_measured_by_a_fixed_figure(
    challenger: float, champion: float, wanted: str
) -> None:
    gate = verdict(held(challenger, champion), has_champion=True)
    assert gate.verdict == wanted
    assert gate.compared == 100  # capacity and coverage


@pytest.mark.parametrize("place", ["seen", "unseen"])
def test_hours_ahead_count_at_seen_and_unseen_parallelisms(place: str) -> None:
    worse = verdict(held(0.05, 0.05), has_champion=True, forward=forward(place, 0.4, 0.1))
    assert worse.verdict is Verdict.FAILED
    assert f"at parallelisms {'never seen' if place == 'unseen' else 'seen before'} 40.00%" in worse.detail
    better = verdict(held(0.05, 0.05), has_champion=True, forward=forward(place, 0.1, 0.4))
    assert better.verdict is Verdict.PASSED
    # What only one of the two has seen says nothing about the other.
    uneven = verdict(held(0.05, 0.05), has_champion=True, forward=forward("one saw it", 0.9, 0.1))
    assert uneven.verdict is Verdict.PASSED


@pytest.mark.covers("apply_review 2")
def test_a_fleet_that_is_idle_throughout_is_still_compared() -> None:
    gate = verdict(held(0.05, 0.05, idle=True), has_champion=True)
    assert gate.verdict is Verdict.PASSED
    assert gate.compared > 0


def test_idle_operators_do_not_count_where_others_are_busy() -> None:
    rows = pd.concat([held(0.05, 0.05), held(5.0, 0.05, idle=True)])
    assert verdict(rows, has_champion=True).verdict is Verdict.PASSED


@pytest.mark.covers("apply_review 2")
def test_a_champion_that_knows_no_running_job_gives_way_to_a_first_model() -> None:
    # It may be better where nothing runs any more: in the windows of the old name.
    renamed = verdict(held(0.05, champion=0.001, linear=0.05), has_champion=True, knows=0)
    assert renamed.verdict is Verdict.FIRST
    assert "knows none of the jobs that run" in renamed.detail


@pytest.mark.covers("apply_review 2")
def test_with_nothing_to_compare_the_champion_is_kept_and_no_plan_is_refused_for_it() -> None:
    gate = verdict(nothing_held(), has_champion=True)
    assert (gate.verdict, gate.compared) == (Verdict.KEPT, 0)


def test_a_worse_interval_fails_a_model_of_the_same_error() -> None:
    rows = held(0.05, 0.05)
    rows["champion_inside"] = [1.0] * 40 + [0.0] * 10
    rows["inside"] = [1.0] * 10 + [0.0] * 40
    gate = verdict(rows, has_champion=True)
    assert gate.verdict is Verdict.FAILED
    assert "distance of the coverage of the 80% band from 80% 60.00% against 0.00%" in gate.detail


def test_a_bad_forecast_is_shown_and_refuses_no_model() -> None:
    record = pd.DataFrame(
        {"date": AS_OF.date(), "method": [CHAMPIONS, "seasonal_naive"], "series": 18, "pinball_q90": [0.9, 0.1]}
    )
    criteria = list_criteria(
        held(0.05, 0.05), NO_LATENCY, ForwardScores.none(), record, has_champion=True, tolerance=0.02
    )
    forecast = criteria[-2]
    assert (forecast.name, forecast.is_worse, forecast.decides) == ("forecast", True, False)
    assert judge(criteria, has_champion=True, champion_knows=1).verdict is Verdict.PASSED


errors = st.lists(st.floats(0, 5) | st.just(math.nan), max_size=30)


@given(errors, errors, st.booleans(), st.integers(0, 3))
def test_a_gate_always_has_a_verdict_that_a_reader_can_follow(
    ours: list[float], theirs: list[float], has_champion: bool, knows: int
) -> None:
    count = min(len(ours), len(theirs))
    one = compare("x", "error", np.array(ours[:count]), np.array(theirs[:count]), against="champion", tolerance=0.02)
    gate = judge([one], has_champion=has_champion, champion_knows=knows)
    assert gate.detail
    if not one.is_comparable:
        assert gate.verdict in ({Verdict.KEPT} if has_champion and knows else {Verdict.FIRST})
    if gate.verdict is Verdict.FAILED:
        assert one.challenger > one.reference + 0.02
    same = compare("x", "error", np.array(ours), np.array(ours), against="champion", tolerance=0.0)
    assert not same.is_worse


@pytest.mark.parametrize("error", [0.05, 0.9])
def test_two_rows_judge_nothing_whatever_they_say(error: float) -> None:
    few = verdict(nothing_held(), has_champion=True, forward=forward("unseen", error, 0.1, rows=2))
    assert (few.verdict, few.compared) == (Verdict.KEPT, 0)
    assert few.criteria[2].reason.endswith(f"{error:.2%} against 10.00% of the champion, too few rows to judge (2)")
    enough = verdict(nothing_held(), has_champion=True, forward=forward("unseen", error, 0.1, rows=LEAST_ROWS))
    assert enough.verdict is (Verdict.PASSED if error < 0.1 else Verdict.FAILED)


def test_few_rows_of_unlike_size_are_no_proof() -> None:
    few = compare("x", "e", np.array([0.9, 0.1]), np.array([0.1, 0.2]), against="champion", tolerance=0.02)
    many = compare("x", "e", np.tile([0.9, 0.1], 500), np.tile([0.1, 0.2], 500), against="champion", tolerance=0.02)
    assert (few.is_worse, many.is_worse) == (False, True)


def test_the_trial_predicts_a_day_at_most_and_never_what_the_champion_has_seen() -> None:
    options = Training()
    as_of_s, hour_s = AS_OF.timestamp(), 3600.0
    month_s, day_s = as_of_s - 28 * 24 * hour_s, 24 * hour_s
    assert find_since(month_s, as_of_s, None, options) == as_of_s - day_s
    assert find_since(month_s, as_of_s, as_of_s - 3 * hour_s, options) == as_of_s - 3 * hour_s
    assert find_since(month_s, as_of_s, as_of_s - 3 * day_s, options) == as_of_s - day_s
    assert find_since(as_of_s - hour_s, as_of_s, None, options) == as_of_s - hour_s / 4
    assert find_since(month_s, as_of_s, as_of_s - LEAST_S / 2, options) is None
    assert find_since(as_of_s, as_of_s, None, options) is None


def bundle(observed: list[int], slope: float) -> FleetBundle:
    p, recorded = np.arange(1, 9), np.array(observed)
    curve = CapacityCurve(p, slope * p, 0.0 * p, recorded, 100.0 * recorded, slope)
    models = JobModels({"map": curve}, {"map": 1.0}, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)))
    return pack_models("m", {("c", "j"): models})


def test_hours_are_seen_when_both_models_had_observed_their_parallelism() -> None:
    rows = pd.DataFrame({"cluster": "c", "job": "j", "operator": "map", "hour": AS_OF, "idle": False,
                         "parallelism": [1, 2, 4, 8], "capacity_per_s": [100.0, 200.0, 400.0, 800.0]})  # fmt: skip
    result = capacity_errors(rows, bundle([1, 2], 100.0), bundle([1, 4], 110.0))
    assert result["place"].tolist() == ["seen", "one saw it", "one saw it", "unseen"]
    assert result["error"].tolist() == [0.0] * 4
    assert result["champion_error"].tolist() == pytest.approx([0.1] * 4)
    assert result["linear_error"].tolist() == [0.0] * 4
    unknown = capacity_errors(rows.assign(operator="$$x"), bundle([1], 100.0), None)
    assert unknown["place"].tolist() == ["unseen"] * 4
    assert unknown[["error", "champion_error", "linear_error"]].isna().all(axis=None)


def test_the_figure_and_the_table_hold_every_criterion() -> None:
    scores = forward("seen", 0.4, 0.1)
    gate = verdict(held(0.05, 0.05), has_champion=True, forward=scores)
    gate_figure(gate, scores.capacity).savefig(io.BytesIO(), format="png")
    empty = ForwardScores.none().capacity
    gate_figure(verdict(nothing_held(), has_champion=False), empty).savefig(io.BytesIO(), format="png")
    table = gate_table(gate).set_index("criterion")
    assert table["result"].to_dict() == {
        "capacity_held": "not worse",
        "capacity_seen": "worse",
        "capacity_unseen": "nothing to compare with",
        "coverage": "not worse",
        "coverage_95": "nothing to compare with",
        "recovery": "nothing to compare with",
        "recovery_coverage": "nothing to compare with",
        "latency": "nothing to compare with",
        "forecast": "nothing to compare with",
        "forecast_coverage": "nothing to compare with",
    }
    assert all(table["reason"])
    assert isinstance(gate.criteria[0], Criterion)


def test_a_95_percent_band_that_holds_too_little_is_worse() -> None:
    rows = held(0.05, 0.05).assign(champion_inside_95=1.0, inside_95=[1.0] * 25 + [0.0] * 25)
    gate = verdict(rows, has_champion=True)
    assert gate.verdict is Verdict.FAILED
    assert "distance of the coverage of the 95% band from 95% 45.00% against 5.00%" in gate.detail


def test_an_error_larger_than_what_is_predicted_passes_no_gate_without_a_word() -> None:
    first = judge([], has_champion=False, champion_knows=0)
    warned = warn_of_errors(first, {"capacity": 0.186, "recovery": 3.99, "latency": 13.64})
    assert warned.verdict is Verdict.FIRST
    named = "recovery is off by 399% on what was held back, latency is off by 1364% on what was held back"
    assert warned.detail == f"{first.detail}; but {named}"
    for fine in ({"recovery": 1.0, "latency": math.nan}, {"recovery": None}, {}):
        assert warn_of_errors(first, fine) == first
