"""The Flink autoscaler as a policy: windows in, one schedule out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.flink_autoscaler.autoscaler_policy import AutoscalerState, FlinkAutoscaler
from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.window_samples import latest_run, samples_of
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.registry import policy as policy_of
from models.scheduling.demand import SourceForecast

JOB = JobGraph.from_operators([Operator("source"), Operator("map", ("source",))])
START_S, WINDOW_S = 1_800_000_000, 300


def seen(
    rate: float, map_at: int, windows: int, *, first: int = 0, per_subtask: float = 1000.0, backlog_growth: float = 0.0
) -> Observations:
    """A source of one subtask that can do 100,000/s, and a map."""
    rows = {name: np.full((windows, 2), np.nan) for name in MEASURES}
    rows["processing_rate_per_s"][:] = rate
    rows["output_rate_per_s"][:] = [rate, 0.0]
    rows["busy_share"][:] = [rate / 1e5, rate / (per_subtask * map_at)]
    rows["backpressured_share"][:] = [1.0 - rate / 1e5 if rate >= per_subtask * map_at else 0.0, 0.0]
    rows["pending_records"][:, 0] = backlog_growth * WINDOW_S * np.arange(1, windows + 1)
    starts = START_S + WINDOW_S * np.arange(first, first + windows)
    parallelism = np.tile([1, map_at], (windows, 1))
    return Observations(
        window_start_s=starts, window_s=WINDOW_S, parallelism=parallelism, disturbed=np.zeros(windows, bool), **rows
    )


def situation(map_at: int, observations: Observations, slots: int = 64) -> Situation:
    no_latency = LatencyModel(np.zeros(0), np.zeros(0))
    models = JobModels({}, dict.fromkeys(JOB.names, 1.0), RecoveryModel(20, 2, 40, 4, 30, 5), no_latency)
    forecast = SourceForecast(START_S, 600, {"source": np.full((4, 144), 1e3)})
    running = {"source": 1, "map": map_at}
    return make_situation(START_S, JOB, running, models, forecast, slots, Planner(), observations)


def target(schedule: Schedule) -> dict[str, int]:
    (decision,) = schedule.decisions
    return dict(zip(schedule.operators, decision.step.parallelism_to.tolist(), strict=True))


def test_the_samples_of_windows_give_back_their_rates() -> None:
    run = seen(500.0, 2, 4, backlog_growth=5.0)
    config = AutoscalerConfig()
    samples = samples_of(config, JOB, run)
    assert samples.times_s.tolist() == [START_S + WINDOW_S * place for place in range(5)]
    assert samples.rate_per_s("map", "num_records_in") == 500.0
    assert samples.rate_per_s("source", "lag") == 5.0
    assert samples.mean("map", "load") == 0.25
    # 500 busy ms/s of two subtasks
    assert samples.rate_per_s("map", "accumulated_busy_time") == pytest.approx(500.0)
    assert np.isnan(samples.mean("source", "observed_tpr"))  # never 30 s of input behind


def test_a_window_without_a_rate_does_not_end_a_counter() -> None:
    run = seen(500.0, 2, 4)
    run.processing_rate_per_s[1, 1] = np.nan
    assert samples_of(AutoscalerConfig(), JOB, run).rate_per_s("map", "num_records_in") == 500.0


def test_a_run_ends_at_a_restart_a_gap_and_another_parallelism() -> None:
    running, whole = np.array([1, 2]), seen(500.0, 2, 6)
    assert len(latest_run(whole, running)) == 6
    assert latest_run(whole.rows(np.array([0, 1, 3, 4, 5])), running).window_start_s[0] == whole.window_start_s[3]
    restarted = replace(whole, disturbed=np.array([False, False, True, False, False, False]))
    assert latest_run(restarted, running).window_start_s[0] == whole.window_start_s[3]
    rescaled = replace(whole, parallelism=np.array([[1, 1]] * 4 + [[1, 2]] * 2))
    assert len(latest_run(rescaled, running)) == 2
    assert len(latest_run(whole, np.array([1, 3]))) == 0
    assert len(latest_run(Observations.nothing(), running)) == 0


def test_scale_up_is_immediate_and_its_size_is_rule_6() -> None:
    # 1000/s into one map of 1000/s: 1000 * 300 / 1800 + 1000 / 0.7 = 1595 -> 2; bound: 1000 / 1.0 is not above 1000
    schedule, memory = FlinkAutoscaler().decide(
        situation(1, seen(1000.0, 1, 3, backlog_growth=50.0)), AutoscalerState()
    )
    assert target(schedule) == {"source": 1, "map": 2}
    assert "map 1 -> 2" in schedule.decisions[0].reason
    assert memory.rules.history["map"][0].new_parallelism == 2
    assert memory.seen_until_s == START_S + 3 * WINDOW_S


def test_nothing_is_scaled_before_a_metrics_window_is_full() -> None:
    schedule, memory = FlinkAutoscaler().decide(
        situation(1, seen(1000.0, 1, 2, backlog_growth=50.0)), AutoscalerState()
    )
    assert schedule.decisions[0].step.is_hold
    assert "metrics window is not full yet" in schedule.decisions[0].reason
    assert not memory.rules.history


def test_scale_down_waits_an_hour_over_several_decisions() -> None:
    policy, memory = FlinkAutoscaler(), AutoscalerState()
    result = []
    for last in range(3, 19, 3):
        schedule, memory = policy.decide(situation(10, seen(1000.0, 10, last)), memory)
        result.append(target(schedule)["map"])
    # the first cycle is at 15 min; an hour later, with the 15th window, 1595 / 10,000 is cut to 1 - 0.6
    assert result == [10, 10, 10, 10, 4, 10]
    assert memory.rules.delayed["map"].first_s == START_S + 16 * WINDOW_S  # it waits anew after a scaling


def test_cycles_of_the_past_only_let_a_scale_down_wait() -> None:
    schedule, memory = FlinkAutoscaler().decide(situation(10, seen(1000.0, 10, 12)), AutoscalerState())
    assert schedule.decisions[0].step.is_hold
    assert memory.rules.delayed["map"].first_s == START_S + 3 * WINDOW_S
    up = seen(1000.0, 1, 12, backlog_growth=50.0)
    _, memory = FlinkAutoscaler().decide(situation(1, up), AutoscalerState())
    assert len(memory.rules.history["map"]) == 1  # not one per window


def test_a_window_leads_to_one_cycle() -> None:
    policy, result = FlinkAutoscaler(), situation(10, seen(1000.0, 10, 12))
    _, memory = policy.decide(result, AutoscalerState())
    schedule, again = policy.decide(result, memory)
    assert again == memory
    assert "no new undisturbed window" in schedule.decisions[0].reason


def test_the_tuned_variant_has_narrower_bounds_and_a_higher_target() -> None:
    """850/s on one map of 1000/s: busy 0.85, inside 0.7 +- 0.3 and inside 0.8 +- 0.1; 950/s is outside the latter."""
    for rate, wanted in ((850.0, (1, 1)), (950.0, (1, 2))):
        result = situation(1, seen(rate, 1, 4))
        sizes = [
            target(policy.decide(result, AutoscalerState())[0])["map"]
            for policy in (FlinkAutoscaler(), policy_of("flink_autoscaler_tuned"))
        ]
        assert tuple(sizes) == wanted
    assert policy_of("flink_autoscaler_tuned").config.utilization_bounds() == pytest.approx((0.7, 0.9))


def test_slots_bound_the_parallelism() -> None:
    result = situation(1, seen(1000.0, 1, 3, backlog_growth=4000.0), slots=3)
    assert target(FlinkAutoscaler().decide(result, AutoscalerState())[0]) == {"source": 1, "map": 3}


ODD = st.sampled_from([0.0, np.nan, np.inf, 1e-9, 1e12]) | st.floats(0, 1e6)


@given(
    st.lists(st.lists(ODD, min_size=2 * len(MEASURES), max_size=2 * len(MEASURES)), max_size=5),
    st.integers(1, 60),
    st.sampled_from([60, 300, 3600]),
    st.booleans(),
)
def test_no_window_breaks_the_policy_and_every_schedule_is_feasible(
    rows: list[list[float]], map_at: int, window_s: int, waits: bool
) -> None:
    windows = len(rows)
    values = np.array(rows, float).reshape(windows, len(MEASURES), 2)
    observations = Observations(
        window_start_s=START_S + window_s * np.arange(windows),
        window_s=window_s,
        parallelism=np.tile([0, map_at], (windows, 1)),
        disturbed=np.zeros(windows, bool),
        **{name: values[:, place] for place, name in enumerate(MEASURES)},
    )
    result = situation(map_at, observations)
    policy = FlinkAutoscaler(AutoscalerConfig(scale_down_interval_s=3600.0 if waits else 0.0))
    schedule, memory = policy.decide(result, policy.first_memory())
    assert all(1 <= count <= 64 for count in target(schedule).values())
    again, same = policy.decide(result, policy.first_memory())
    assert (target(again), dump(same)) == (target(schedule), dump(memory))
    assert dump(load(AutoscalerState, dump(memory))) == dump(memory)
