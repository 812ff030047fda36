"""ContTune's schedule with announced rates, on one query and one permutation."""

import numpy as np
import pytest

from benchmarks.announced.__main__ import row_of, table_of
from benchmarks.announced.learning import models_of
from benchmarks.announced.run import Announced, announcements, can_sustain, forecast_of, least_cores, run_planner
from benchmarks.papers.conttune.queries import query
from benchmarks.papers.conttune.query_runs import RATES, workload
from models.policies.tuning.capacity_history import add_observation
from models.scheduling.demand import LEVELS, MEDIAN


def test_the_planner_needs_about_one_reconfiguration_per_announced_change() -> None:
    course = run_planner(query("Q3"), Announced(), seeds=1, permutations=1)
    assert course.reconfigurations.shape == (1, 1, RATES)
    assert course.reconfigurations.mean() <= 1.1
    assert course.reconfigurations[..., RATES // 2 :].max() <= 1  # all rates were seen once
    assert course.sustained.all()
    second = slice(RATES // 2, None)
    least = least_cores(query("Q3"), 1)[0, 0, second].mean()
    assert course.core_s[0, 0, second].mean() / 600 == pytest.approx(least, rel=0.05)
    row = {**row_of("Q3", "planner", course), "cores_vs_alpha_3": 1.0}
    assert table_of([row]).row_count == 1


def test_announcements_are_true_within_their_error_and_the_forecast_says_so() -> None:
    true, reported = workload(2), announcements(2, 0.1)
    assert (np.abs(reported / true - 1) <= 0.1).all()
    assert (announcements(2, 0.0) == true).all()
    job = query("Q1")
    forecast = forecast_of(job, reported[0, 0], 3, 0.1)
    assert (forecast.start_s, forecast.bin_s, forecast.bins) == (1800, 600, RATES - 3)
    low, high = (forecast.quantiles["bids"][LEVELS.index(level)] for level in (0.1, 0.9))
    median = forecast.quantiles["bids"][MEDIAN]
    assert median == pytest.approx(reported[0, 0, 3:] * job.unit_per_s["bids"])
    assert (low, high) == (pytest.approx(median / 1.08), pytest.approx(median / 0.92))


def test_sustained_is_judged_by_the_true_ability() -> None:
    job = query("Q1")
    least = least_cores(job, 1).astype(np.int64)
    assert can_sustain(job, least, workload(1)).all()
    assert not can_sustain(job, least - 1, workload(1))[least > 1].any()


def test_nothing_is_known_before_anything_was_observed() -> None:
    assert models_of({"tuned": ()}, 8) is None
    history = add_observation(add_observation((), 2, 100.0), 4, 180.0)
    models = models_of({"tuned": history, "after1": ()}, 8)
    assert models is not None
    assert set(models.capacity) == {"tuned"}
    assert models.capacity["tuned"].observed.tolist() == [2, 4]
    assert models.capacity["tuned"].sd_per_s[7] > models.capacity["tuned"].sd_per_s[3]
