"""Phoebe's rules and the models of its profiling phase against its logs, its profile and the paper's formulas."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.policies.phoebe.capacity_profile import CapacityRegression, LatencyClasses, ProfiledLatency
from lab.policies.phoebe.recovery_time import projected_load, recovery_s
from lab.policies.phoebe.rule import Candidate, algorithm_1, logged_rule, nearly_smallest
from lab.policies.phoebe.twres import SustainableThroughput, choose_sustainable
from models.bundle.job_models import closed_form_recovery_s

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
STEPS = [json.loads(line) for line in (CASES / "phoebe.jsonl").read_text().splitlines()]
with (CASES / "phoebe_profile_cars.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))


def column(name: str, backlog: str) -> np.ndarray:
    return np.array([float(row[name]) for row in ROWS if row["isBckPres"] == backlog])


def rate(
    recovery: dict[int, float], latency: dict[int, float], abnormal: set[int] = frozenset()
) -> dict[int, Candidate]:  # type: ignore[assignment]
    return {s: Candidate(s, recovery[s], latency[s], int(s in abnormal)) for s in recovery}


FLAT = dict.fromkeys(range(2, 9), 1000.0)
FALLING = {s: 400.0 - 40.0 * s for s in range(2, 9)}  # 320, 280, 240, 200, 160, 120, 80


def test_smallest_valid_scale_out_is_chosen_by_both() -> None:
    given_ = rate(FALLING, FLAT)
    assert algorithm_1(given_) == 6
    result = logged_rule(given_, current=3)
    assert (result.scale_out, result.valid_recovery, result.valid) == (6, (6, 7, 8), (6, 7, 8))
    abnormal = rate(FALLING, FLAT, {6})
    assert algorithm_1(abnormal) == 7
    assert logged_rule(abnormal, current=3).scale_out == 7


def test_the_target_itself_is_allowed_by_the_paper_only() -> None:
    exact = rate({**FALLING, 5: 180.0}, FLAT)
    assert algorithm_1(exact) == 5
    assert logged_rule(exact, current=2).scale_out == 6


def test_small_steps_down_are_not_taken() -> None:
    """The best is 6: from 7 and 8 the job stays, from 9 it moves."""
    given_ = rate(FALLING, FLAT)
    assert [logged_rule(given_, current).scale_out for current in (5, 6, 7, 8, 9)] == [6, 6, 7, 8, 6]
    assert logged_rule(given_, 8).best == 6


def test_without_a_valid_one_the_paper_takes_the_largest_and_the_prototype_a_compromise() -> None:
    recovery = {2: 900.0, 3: 500.0, 4: 490.0, 5: 300.0, 6: 299.0}
    latency = {2: 5000.0, 3: 2000.0, 4: 1990.0, 5: 1985.0, 6: 1980.0}
    given_ = rate(recovery, latency)
    assert algorithm_1(given_) == 6
    # recovery: 5 is more than 5% better than what stands before it, 6 is not better enough; latency alike gives 3
    assert nearly_smallest(given_, 2, lambda one: one.recovery_s) == 5
    assert nearly_smallest(given_, 2, lambda one: one.latency_ms) == 3
    assert logged_rule(given_, current=2).scale_out == 5
    # from 6 a smaller one of nearly the same value is taken: 5, which is too small a step down
    assert logged_rule(given_, current=6).best == 5
    assert logged_rule(given_, current=6).scale_out == 6


def test_all_logged_decisions_without_the_command() -> None:
    for step in STEPS:
        normal = set(step["valid_both"])
        given_ = {
            int(s): Candidate(int(s), value, step["latency"][s], int(int(s) not in normal))
            for s, value in step["rec_time"].items()
        }
        result = logged_rule(given_, step["current"])
        assert (result.scale_out, list(result.valid_recovery)) == (step["decision"], step["valid_rec"]), step["ts"]


VALUES = st.floats(0, 1e4) | st.sampled_from([math.nan, math.inf, 0.0])


@given(
    st.dictionaries(st.integers(1, 64), st.tuples(VALUES, VALUES, st.integers(0, 1)), min_size=1), st.integers(1, 64)
)
def test_decisions_are_candidates_or_no_change(given_: dict[int, tuple[float, float, int]], current: int) -> None:
    candidates = {s: Candidate(s, *values) for s, values in given_.items()}
    result = logged_rule(candidates, current)
    assert result.best in candidates
    assert result.scale_out in {result.best, current}
    assert set(result.valid) <= set(result.valid_recovery)
    assert algorithm_1(candidates) in candidates
    if result.valid:
        assert result.best == min(result.valid)
        assert algorithm_1(candidates) <= result.best


def test_nothing_to_choose_from_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        logged_rule({}, 4)
    with pytest.raises(ValueError, match="at least one candidate"):
        algorithm_1({})


def test_capacity_of_the_profile_is_the_reference_ridge() -> None:
    fitted = CapacityRegression.fit(column("scaleOut", "1"), column("avgThr", "1"))
    assert fitted.slope_per_s == pytest.approx(15891.524418775723, rel=1e-9)
    assert fitted.intercept_per_s == pytest.approx(6896.378351303458, rel=1e-9)
    assert fitted.alpha == 1.0
    assert fitted.per_s(24) == pytest.approx(15891.524418775723 * 24 + 6896.378351303458)


def test_latency_classes_of_the_profile_are_the_reference_clusters() -> None:
    latency = column("avgLat", "0")
    classes = LatencyClasses.fit(latency).classify(latency)
    assert np.bincount(classes).tolist() == [70, 9]
    assert latency[classes == 0].max() == pytest.approx(1658.976446)
    assert latency[classes == 1].min() == pytest.approx(3489.508264)


def test_smallest_normal_scale_out_by_rate_is_the_reference() -> None:
    latency = column("avgLat", "0")
    classes = LatencyClasses.fit(latency)
    model = ProfiledLatency.fit(column("scaleOut", "0"), column("avgThr", "0"), latency)
    scale_outs = np.arange(2, 25)
    result = {}
    for thousands in range(20, 361, 20):
        normal = scale_outs[classes.classify(model.latency_ms(scale_outs, 1000.0 * thousands)) == 0]
        result[thousands] = int(normal[0]) if len(normal) else None
    by_rate = [2, 4, 4, 7, 7, 7, 10, 10, 13, 13, 13, 16, 16, 16, 22, 22, 22, None]
    assert result == dict(zip(range(20, 361, 20), by_rate, strict=True))


def test_sustainable_throughput_of_the_profile_is_the_reference_nnls() -> None:
    fitted = SustainableThroughput.fit(column("scaleOut", "1"), column("avgThr", "1"))
    assert fitted.weights == pytest.approx([6370.864977666683, 15933.565488666665, 0.0, 0.0], rel=1e-9)


def test_twres_takes_the_smallest_that_sustains_the_forecast() -> None:
    line = SustainableThroughput(np.array([0.0, 100.0, 0.0, 0.0]))  # 100/s per worker
    allowed = list(range(1, 11))

    def chosen(current: int, load_per_s: float, latency_ms: float = 1000.0) -> int:
        return choose_sustainable(line, allowed, current, forecast_records=600 * load_per_s, latency_ms=latency_ms)

    assert chosen(3, 450.0) == 5
    assert chosen(8, 450.0) == 5
    assert chosen(3, 5000.0) == 10
    assert chosen(8, 450.0, latency_ms=2001.0) == 9
    assert chosen(10, 450.0, latency_ms=2001.0) == 10
    assert chosen(3, 450.0, latency_ms=2001.0) == 5
    assert chosen(3, math.nan) == 3


@given(st.floats(0.0, 0.9), st.integers(0, 60), st.integers(20, 200))
def test_rounds_of_catching_up_approach_the_closed_form(share: float, age_s: int, downtime_s: int) -> None:
    """What is left out are the rounds after the first below a second, share / (1 - share) of it in all."""
    load = np.full(6000, share * 2e5)
    result = recovery_s(load, 100, capacity_per_s=2e5, downtime_s=downtime_s, since_checkpoint_s=age_s)
    exact = float(closed_form_recovery_s(downtime_s, age_s, share * 2e5, 2e5))
    assert exact - share / (1.0 - share) - 1e-6 <= result <= exact + 1e-6


def test_recovery_of_the_sheet_and_of_edge_cases() -> None:
    """T = 200K, 50K arriving, I = 10, D = 110: 110 + 50 * 120 / 150 = 150 s."""
    steady = np.full(2000, 5e4)
    known = {"downtime_s": 110.0, "since_checkpoint_s": 10.0}
    assert recovery_s(steady, 600, capacity_per_s=2e5, **known) == pytest.approx(150.0, abs=1.0)
    assert recovery_s(steady, 600, capacity_per_s=0.0, **known) == math.inf
    assert recovery_s(np.zeros(2000), 600, capacity_per_s=2e5, **known) == 110.0
    overloaded = recovery_s(np.full(1200, 3e5), 600, capacity_per_s=2e5, **known)
    assert math.isfinite(overloaded)
    assert overloaded > 600.0
    assert math.isnan(recovery_s(np.full(2000, np.nan), 600, capacity_per_s=2e5, **known))


def test_projected_load_is_that_of_the_highest_bin() -> None:
    rising = np.repeat([1.0, 2.0, 3.0, 5.0, 4.0], 120)
    assert projected_load(rising) == 5.0
    assert projected_load(rising, bins=1) == 3.0
    assert projected_load([math.nan, 2.0]) == 2.0
    assert math.isnan(projected_load([]))
