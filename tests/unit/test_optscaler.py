"""OptScaler's estimator, optimisation and decisions against values computed by hand from the paper's rules."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.optscaler.control import first_workers, required_workers
from lab.policies.optscaler.estimator import Estimator, UtilisationSample, fit_estimator
from lab.policies.optscaler.optscaler_memory import OptScalerMemory
from lab.policies.optscaler.optscaler_options import OptScalerOptions
from lab.policies.optscaler.optscaler_policy import OptScaler
from lab.policies.optscaler.planned_load import ForecastLoad
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Situation
from models.policies.situations import assume_untrained
from models.scheduling.demand import SourceForecast

GRAPH = JobGraph((Operator("source", (), 128), Operator("map", ("source",), 6)))
NOW_S, WINDOW_S, BIN_S = 1_795_000_200, 300, 600
LOADS = np.linspace(100.0, 400.0, 16)


def windows(load_per_s: float, *, workers: int = 4, count: int = 20, until_s: int = NOW_S) -> Observations:
    """Return windows of a job whose operator `map` works 0.1% of the time for each record/s of a worker."""
    measures = {name: np.full((count, 2), np.nan) for name in MEASURES}
    measures["busy_share"] = np.tile([0.05, 0.001 * load_per_s / workers], (count, 1))
    for name in ("processing_rate_per_s", "target_data_rate_per_s"):
        measures[name] = np.tile([load_per_s, np.nan], (count, 1))
    starts = until_s - WINDOW_S * np.arange(count, 0, -1)
    return Observations(
        starts, WINDOW_S, np.full((count, 2), workers, np.int64), disturbed=np.zeros(count, bool), **measures
    )


def situation(observations: Observations, expected_per_s: np.ndarray, at_s: int = NOW_S) -> Situation:
    forecast = SourceForecast(NOW_S, BIN_S, {"source": np.tile(expected_per_s, (4, 1))})
    return make_situation(
        as_of_s=at_s,
        graph=GRAPH,
        parallelism={"source": 4, "map": 4},
        models=assume_untrained(GRAPH, observations),
        forecast=forecast,
        slots_max=32,
        options=Planner(),
        observations=observations,
    )


def test_the_estimator_is_the_line_of_its_samples() -> None:
    line = fit_estimator([UtilisationSample(load, 0.1 + 0.001 * load) for load in LOADS])
    assert line is not None
    assert (line.slope, line.base) == pytest.approx((0.001, 0.1))
    assert (line.error_slope * 400, line.error_base) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_the_error_grows_with_the_load_and_no_coefficient_is_negative() -> None:
    """A normal variable is 0.798 standard deviations from its mean, in the mean."""
    both = [UtilisationSample(load, (0.001 + sign * 0.0001) * load) for load in LOADS for sign in (-1, 1)]
    line = fit_estimator(both)
    assert line is not None
    assert (line.slope, line.base) == pytest.approx((0.001, 0.0), abs=1e-9)
    assert (line.error_slope, line.error_base) == pytest.approx((0.0001 * math.sqrt(math.pi / 2), 0.0), abs=1e-9)
    below = fit_estimator([UtilisationSample(load, 0.002 * load - 0.1) for load in LOADS])
    assert below is not None
    assert below.base == 0.0


def test_few_samples_give_a_proportion_and_none_give_nothing() -> None:
    assert fit_estimator([UtilisationSample(100.0, 0.2), UtilisationSample(300.0, 0.6)]) == Estimator(
        pytest.approx(0.002)
    )
    assert fit_estimator([]) is None


def test_feedback_follows_algorithm_1() -> None:
    """0.3 is estimated and 0.4 observed: e = -0.1, and eta e y / x = 0.5 / 100^2 x -0.1 x 100 = -0.0005."""
    before = Estimator(0.002, 0.1)
    assert before.correct(UtilisationSample(100.0, 0.4), 0.5) == Estimator(pytest.approx(0.0025), 0.1)
    assert before.correct(UtilisationSample(100.0, 0.4), 0.0) == before


def test_workers_keep_the_target_with_the_probability() -> None:
    """0.9 is 1.2816 deviations: 2000 x (0.001 + 0.00012816) / (0.5 - 0.1 - 0.012816) = 5.83 workers."""
    line = Estimator(0.001, 0.1, 0.0001, 0.01)
    assert required_workers(line, [1000.0, 2000.0, 1500.0, 300.0], 0.5, 0.9) == [6, 6, 5]
    assert required_workers(line, [1000.0, 2000.0, 1500.0, 300.0], 0.5, 0.5) == [5, 5, 4]
    assert required_workers(line, [1000.0, 2000.0], 0.11, 0.9) is None


def test_a_peak_ahead_is_reached_at_the_speed_of_scaling() -> None:
    """30 minutes, 4 nodes at a time, 5 minutes each: 24 nodes an interval."""
    change = OptScalerOptions().change_max
    assert change == 24
    assert first_workers([80, 150, 300], 100, change, 1, 400) == 124
    assert first_workers([80, 126, 148], 100, change, 1, 400) == 102
    assert first_workers([10, 10, 80], 60, change, 1, 400) == 36
    assert first_workers([10, 10, 80], 50, change, 1, 400) == 32
    assert first_workers([1, 1, 1], 3, change, 2, 400) == 2
    assert first_workers([900, 1, 1], 390, change, 1, 400) == 400


@given(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.integers(1, 9), st.integers(1, 3))
def test_the_first_change_is_that_of_the_papers_objective(required: list[int], running: int, change: int) -> None:
    """The sum of m / x over the intervals, the larger the better, by trying all numbers of workers."""

    def is_admissible(path: tuple[int, ...]) -> bool:
        steps = zip((running, *path), path, strict=False)
        return all(abs(after - before) <= change for before, after in steps) and all(
            count >= least for count, least in zip(path, required, strict=True)
        )

    paths = [path for path in product(range(1, 10), repeat=3) if is_admissible(path)]
    if paths:
        best = max(paths, key=lambda path: sum(need / count for need, count in zip(required, path, strict=True)))
        assert first_workers(required, running, change, 1, 9) == best[0]


def test_an_interval_has_the_highest_bin_that_it_touches() -> None:
    planned = ForecastLoad(NOW_S, BIN_S, (10.0, 20.0, 30.0, 40.0, 50.0))
    assert planned.list_peaks(NOW_S + 600, 1800, 3, 5.0) == [40.0, 50.0, 50.0]
    assert planned.list_peaks(NOW_S + 600, 1800, 2, 70.0) == [70.0, 50.0]
    assert ForecastLoad().list_peaks(NOW_S, 1800, 2, 7.0) == [7.0, 7.0]


def test_it_rises_before_the_load_does_and_waits_for_half_an_hour() -> None:
    """2,000 records/s of the next half hour need 4 workers at 50%, and 5,000 in the one after it 10."""
    policy, shown = OptScaler(), windows(1000.0)
    rising = np.repeat([1000.0, 2000.0, 5000.0], [1, 2, 30])
    schedule, left = policy.decide(situation(shown, rising), policy.first_memory())
    assert schedule.decisions[0].step.parallelism_to.tolist() == [10, 6]  # map has 6 key groups
    memory = policy.accept_plan(policy.first_memory(), left)
    decision, memory = policy.evaluate(situation(shown, rising).job, memory)
    assert decision.wanted == {"source": 10, "map": 6}
    later = situation(windows(1000.0, until_s=NOW_S + 1500), rising, NOW_S + 1500).job
    decision, memory = policy.evaluate(later, memory)
    assert decision.wanted is None
    decision, memory = policy.evaluate(replace(later, now_s=NOW_S + 1800), memory)
    assert decision.wanted == {"source": 10, "map": 6}
    assert load(OptScalerMemory, dump(memory)) == memory


def test_without_a_plan_the_load_of_the_last_window_goes_on() -> None:
    policy, shown = OptScaler(), situation(windows(3000.0), np.ones(30))
    memory = policy.drop_plan(policy.decide(shown, policy.first_memory())[1])
    decision, _ = policy.evaluate(shown.job, memory)
    assert decision.wanted == {"source": 6, "map": 6}


def test_a_job_of_which_nothing_is_known_is_left_as_it_is() -> None:
    policy, nothing = OptScaler(), situation(Observations.nothing(2), np.ones(30))
    decision, memory = policy.evaluate(nothing.job, policy.first_memory())
    assert (decision.wanted, memory) == (None, policy.first_memory())
    assert policy.evaluate(replace(nothing.job, up=False), memory)[0].wanted is None
    assert policy.follow(memory, NOW_S)[0].wanted is None
