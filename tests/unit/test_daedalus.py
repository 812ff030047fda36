"""Daedalus' capacity, forecast, recovery and decisions against values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.daedalus.capacity_regression import CapacityLine, estimate_capacity
from lab.policies.daedalus.daedalus_memory import DaedalusMemory
from lab.policies.daedalus.daedalus_options import DaedalusOptions
from lab.policies.daedalus.daedalus_policy import Daedalus
from lab.policies.daedalus.load_forecast import forecast_by_differences, forecast_by_line, weighted_error
from lab.policies.daedalus.recovery import predict_recovery_s
from lab.policies.daedalus.scale_out import ScaleOutOutlook, choose_workers
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Situation
from models.scheduling.demand import SourceForecast

GRAPH = JobGraph((Operator("source", (), 128), Operator("map", ("source",), 128)))
RECOVERY = RecoveryModel(30.0, 2.0, 40.0, 4.0, 10.0, 3)
NOW_S, WINDOW_S = 1_795_000_200, 300


def line(*points: tuple[float, float], workers: int = 4) -> CapacityLine:
    made = CapacityLine(workers)
    for use, throughput_per_s in points:
        made = made.add(use, throughput_per_s)
    return made


def situation(loads: Sequence[float], workers: int, until_s: int = NOW_S, pending: float = 0.0) -> Situation:
    """Return a job of which a worker processes 1,000 records/s, after windows with these loads."""
    measures = {name: np.full((len(loads), 2), np.nan) for name in MEASURES}
    taken = np.minimum(loads, 1000.0 * workers)
    measures["busy_share"] = np.column_stack([0.1 + 0 * taken, taken / (1000.0 * workers)])
    measures["processing_rate_per_s"][:, 0], measures["target_data_rate_per_s"][:, 0] = taken, loads
    measures["pending_records"][:, 0] = pending
    starts = until_s - WINDOW_S * np.arange(len(loads), 0, -1)
    parallelism = np.full((len(loads), 2), workers, np.int64)
    return make_situation(
        as_of_s=until_s,
        graph=GRAPH,
        parallelism=dict.fromkeys(GRAPH.names, workers),
        models=JobModels({}, dict.fromkeys(GRAPH.names, 1.0), RECOVERY, LatencyModel(np.zeros(0), np.zeros(0))),
        forecast=SourceForecast(until_s, 3600, {"source": np.ones((4, 1))}),
        slots_max=32,
        options=Planner(),
        observations=Observations(starts, WINDOW_S, parallelism, disturbed=np.zeros(len(loads), bool), **measures),
    )


def decide(policy: Daedalus, shown: Situation, memory: DaedalusMemory) -> tuple[int, DaedalusMemory]:
    schedule, after = policy.decide(shown, memory)
    return int(schedule.decisions[0].step.parallelism_to.max()), after


def test_a_capacity_is_the_regressions_value_at_the_desired_use() -> None:
    """Means 0.4 and 400, covariance over variance 84 / 0.08 = 1050: 400 + 1050 x 0.6 at full use."""
    made = line((0.2, 200.0), (0.4, 380.0), (0.6, 620.0))
    assert made.capacity_per_s(1.0) == pytest.approx(1030.0)
    assert made.capacity_per_s(0.8) == pytest.approx(820.0)


def test_windows_that_tell_no_slope_give_a_proportion() -> None:
    assert line((0.5, 500.0), (0.5, 500.0)).capacity_per_s(1.0) == pytest.approx(1000.0)
    assert line((0.2, 400.0), (0.6, 400.0)).capacity_per_s(1.0) == pytest.approx(1000.0)


def test_a_scale_out_that_never_ran_is_in_proportion_to_the_nearest() -> None:
    lines = [line((0.5, 500.0), workers=4), line((0.5, 800.0), workers=8)]
    assert [estimate_capacity(lines, workers, 1.0) for workers in (2, 4, 6, 7, 16)] == [500, 1000, 1500, 1400, 3200]


def test_a_forecast_by_differences_goes_on_with_what_changes() -> None:
    assert forecast_by_differences(100.0 + 10.0 * np.arange(30), 3) == pytest.approx([400.0, 410.0, 420.0])
    wave = 100.0 + 50.0 * (np.arange(40) % 2)
    assert forecast_by_differences(wave, 2) == pytest.approx([100.0, 150.0])
    assert forecast_by_differences(np.array([5.0, 9.0, 40.0]), 2) == pytest.approx([40.0, 40.0])
    assert forecast_by_differences(np.maximum(100.0 - 5.0 * np.arange(21), 0.0), 2) == pytest.approx([0.0, 0.0])


def test_a_line_and_the_error_of_a_forecast() -> None:
    assert forecast_by_line(100.0 + 10.0 * np.arange(9), 2) == pytest.approx([190.0, 200.0])
    assert forecast_by_line(np.array([7.0]), 2) == pytest.approx([7.0, 7.0])
    assert weighted_error(np.array([110.0, 180.0]), np.array([100.0, 200.0])) == pytest.approx(0.1)


def test_a_recovery_works_off_what_waited_was_repeated_and_came_during_the_downtime() -> None:
    """500 + 10 x 100 + 30 x 100 = 4,500 records at 250 - 100 a second: 30 s after the 30 s of the downtime."""
    after = {"downtime_s": 30.0, "waiting": 500.0, "repeated_s": 10.0}
    assert predict_recovery_s([100.0], 60.0, capacity_per_s=250.0, **after) == pytest.approx(60.0)
    assert predict_recovery_s([100.0], 60.0, capacity_per_s=100.0, **after) == math.inf


def test_a_recovery_is_cut_short_by_a_rise_and_outlasts_it() -> None:
    """3,000 records at 30 s; half of them are left at 60 s, and from 120 s on 10 s more take them."""
    stopped = {"downtime_s": 30.0, "waiting": 0.0, "repeated_s": 0.0}
    assert predict_recovery_s([100.0, 200.0], 60.0, capacity_per_s=150.0, **stopped) == math.inf
    assert predict_recovery_s([100.0, 150.0, 0.0], 60.0, capacity_per_s=150.0, **stopped) == pytest.approx(130.0)
    long = {**stopped, "downtime_s": 90.0}
    assert predict_recovery_s([100.0, 200.0, 0.0], 60.0, capacity_per_s=240.0, **long) == pytest.approx(165.0)


def test_the_fewest_workers_hold_the_forecast_and_recover_in_time() -> None:
    """1,000 a worker: 3 hold 2,500 a second, and 40 s of them take 200 s at 3, 67 s at 4."""
    lines, options = [line((0.5, 2000.0), workers=4)], DaedalusOptions()
    outlook = ScaleOutOutlook((2000.0, 2500.0), WINDOW_S, 0.0)

    def choose(recovery_max_s: float, running: int = 4, waiting: float = 0.0) -> int:
        limited = DaedalusOptions(recovery_max_s=recovery_max_s)
        ahead = ScaleOutOutlook((2500.0, 2500.0), WINDOW_S, waiting)
        return choose_workers(lines, ahead, running=running, slots_max=32, recovery=RECOVERY, options=limited)

    assert choose_workers(lines, outlook, running=4, slots_max=32, recovery=RECOVERY, options=options) == 3
    assert choose(600.0) == 3
    assert choose(229.0) == 4  # 30 s, and 100,000 records at 500 a second
    assert choose(231.0) == 3
    assert choose(10.0, running=3) == 3  # what runs has no downtime
    assert choose(29.0, running=3, waiting=1e6) == 32  # no change is over so soon


def test_it_follows_the_load_and_waits_after_a_change() -> None:
    policy = Daedalus()
    workers, memory = decide(policy, situation([1500.0] * 3, 4), policy.first_memory())
    assert workers == 2
    assert load(DaedalusMemory, dump(memory)) == memory
    soon = situation([500.0] * 4, 2, NOW_S + 300)
    assert decide(policy, soon, memory)[0] == 2  # a scale-in waits for 600 s
    assert decide(policy, situation([500.0] * 5, 2, NOW_S + 600), memory)[0] == 1
    assert decide(policy, situation([3500.0] * 4, 2, NOW_S + 300), memory)[0] == 4


def test_a_change_that_did_not_come_is_asked_for_again() -> None:
    policy = Daedalus()
    workers, memory = decide(policy, situation([1500.0] * 3, 4), policy.first_memory())
    assert (workers, memory.changed_s) == (2, None)
    workers, memory = decide(policy, situation([1500.0] * 4, 4, NOW_S + 300), memory)
    assert (workers, memory.asked_s, memory.changed_s) == (2, NOW_S + 300, None)
    _, memory = decide(policy, situation([1500.0] * 5, 2, NOW_S + 600), memory)
    assert memory.changed_s == NOW_S + 300


def test_after_a_bad_forecast_a_straight_line_counts() -> None:
    """Loads stayed, as forecast of a short history, then doubled: the error is a half, and the line goes on rising."""
    policy = Daedalus(DaedalusOptions(forecast_s=600))
    _, memory = decide(policy, situation([1000.0] * 4, 4), policy.first_memory())
    assert memory.expected == (1000.0, 1000.0)
    _, memory = decide(policy, situation([2000.0] * 2, 4, NOW_S + 600), memory)
    assert memory.error == pytest.approx(0.5)
    workers, _ = decide(policy, situation([3000.0] * 2, 4, NOW_S + 1200), memory)
    assert workers == 5


def test_a_job_of_which_no_capacity_is_known_is_left_as_it_is() -> None:
    policy = Daedalus()
    workers, memory = decide(policy, situation([0.0] * 3, 4), policy.first_memory())
    assert (workers, memory.lines) == (4, ())
