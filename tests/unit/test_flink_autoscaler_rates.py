"""Rules 1-7 of the Flink autoscaler against numbers worked out by hand."""

import math

import numpy as np
import pytest

from lab.policies.flink_autoscaler.config import AutoscalerConfig
from lab.policies.flink_autoscaler.evaluate import evaluate_vertices
from lab.policies.flink_autoscaler.target_capacity import (
    Observation,
    RequiredRates,
    bounds,
    scale_factor,
    scaling_coefficient,
    target_capacity,
)
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.true_rates import (
    busy_time_rate,
    choose_rate,
    edge_ratio,
    observed_rate,
    source_target_rate,
)
from lab.policies.flink_autoscaler.window import MetricWindow, WindowError

CONFIG = AutoscalerConfig()


def window(times: list[float], **vertices: dict[str, list[float]]) -> MetricWindow:
    values = {name: {metric: np.array(series, float) for metric, series in of.items()} for name, of in vertices.items()}
    return MetricWindow(np.array(times, float), values)


def test_source_target_rate_follows_a_growing_and_a_shrinking_lag() -> None:
    assert source_target_rate(100.0, 50.0) == 150.0
    assert source_target_rate(100.0, -40.0) == 60.0
    assert source_target_rate(100.0, -400.0) == 0.0
    assert math.isnan(source_target_rate(math.nan, 1.0))


def test_target_capacity_has_three_terms() -> None:
    """C + TDR * restart / catch-up + TDR / u = 100 + 600 * 300 / 1800 + 600 / 0.75 = 1000."""
    assert target_capacity(CONFIG, RequiredRates(600.0, 100.0), 0.75, restart_s=300.0) == 1000.0
    assert target_capacity(CONFIG, RequiredRates(600.0, 100.0), 0.75, restart_s=None) == 900.0
    assert (
        target_capacity(AutoscalerConfig(catch_up_duration_s=0.0), RequiredRates(600.0), 0.75, restart_s=300.0) == 800.0
    )
    assert target_capacity(CONFIG, RequiredRates(600.0), 0.0, restart_s=None) == math.inf
    assert math.isnan(target_capacity(CONFIG, RequiredRates(math.nan), 0.5, restart_s=None))


def test_half_a_record_is_rounded_up() -> None:
    assert target_capacity(CONFIG, RequiredRates(62.5), 1.0, restart_s=None) == 63.0
    assert target_capacity(CONFIG, RequiredRates(63.5), 1.0, restart_s=None) == 64.0


def test_default_bounds_and_those_under_backlog() -> None:
    """Utilisation 0.4 .. 1.0: up below 400, down above 400 * 300 / 1800 + 400 / 0.4 = 1066.7."""
    result = bounds(CONFIG, RequiredRates(400.0), restart_s=300.0, processing_backlog=False)
    assert (result.scale_up_below_per_s, result.scale_down_above_per_s) == (400.0, 1067.0)
    assert [result.excludes(rate) for rate in (399.0, 400.0, 1067.0, 1068.0, math.nan)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    behind = bounds(CONFIG, RequiredRates(400.0, 100.0), restart_s=300.0, processing_backlog=True)
    assert (behind.scale_up_below_per_s, behind.scale_down_above_per_s) == (500.0, math.inf)


def test_busy_time_rate_and_the_observed_rate_that_replaces_it() -> None:
    assert busy_time_rate(50.0, 0.25) == 200.0
    assert busy_time_rate(0.0, 0.25) == math.inf
    assert busy_time_rate(50.0, 0.0) == math.inf
    assert math.isnan(busy_time_rate(50.0, math.nan))
    # 15% above 200 is 230
    assert choose_rate(CONFIG, 229.0, 200.0) == 229.0
    assert choose_rate(CONFIG, 231.0, 200.0) == 200.0
    assert choose_rate(CONFIG, math.inf, 200.0) == 200.0
    assert choose_rate(CONFIG, math.nan, 200.0) == 200.0
    assert choose_rate(CONFIG, 231.0, math.nan) == 231.0


def test_a_source_is_observed_only_while_it_catches_up() -> None:
    assert observed_rate(CONFIG, 100.0, 200.0, lag=3000.0) == 125.0
    assert math.isnan(observed_rate(CONFIG, 100.0, 200.0, lag=2999.0))
    assert math.isnan(observed_rate(CONFIG, 100.0, 1000.0, lag=3000.0))
    assert observed_rate(CONFIG, 0.0, 0.0, lag=0.0) == math.inf


def test_edge_ratios_of_a_diamond() -> None:
    """`join` has two inputs; `left` feeds nothing else, so the rest of join's input is from `source`."""
    topology = JobTopology.of(
        [
            TopologyVertex("join", 1, 128, {"left": "HASH", "source": "HASH"}),
            TopologyVertex("left", 1, 128, {"source": "FORWARD"}),
            TopologyVertex("source", 1, 128),
        ]
    )
    observed = window(
        [0.0, 10.0],
        source={"num_records_in": [0, 1000], "num_records_out": [0, 2000]},
        left={"num_records_in": [0, 500], "num_records_out": [0, 250]},
        join={"num_records_in": [0, 1250]},
    )
    assert edge_ratio(topology, observed, "source", "left") == 0.5
    assert edge_ratio(topology, observed, "source", "join") == 1.0
    # source has two outputs, so what it sends to join is not known: the whole output of left stands in
    assert edge_ratio(topology, observed, "left", "join") == 0.5


def test_a_whole_job_is_evaluated() -> None:
    """Source 200/s in, lag +10/s to 600, busy 0.5; two records out per record in; catch-up 1800 s."""
    topology = JobTopology.of([TopologyVertex("sink", 2, 128, {"source": "HASH"}), TopologyVertex("source", 1, 128)])
    observed = window(
        [0.0, 30.0, 60.0],
        source={"num_records_in": [0, 6000, 12000], "lag": [0, 300, 600], "load": [0.25, 0.5, 0.75]},
        sink={"num_records_in": [0, 12000, 24000], "load": [math.nan, 0.2, 0.2]},
    )
    result = evaluate_vertices(CONFIG, topology, observed, restart_s=300.0)
    source, sink = result.vertices["source"], result.vertices["sink"]
    assert list(result.vertices) == ["source", "sink"]
    assert (source.demand.target_per_s, source.demand.catch_up_per_s) == pytest.approx((210.0, 600 / 1800))
    assert (sink.demand.target_per_s, sink.demand.catch_up_per_s) == pytest.approx((420.0, 1200 / 1800))
    assert (source.true_processing_per_s, sink.true_processing_per_s) == pytest.approx((400.0, 2000.0))
    assert not result.processing_backlog
    assert sink.input_ship == ("HASH",)


def test_a_source_five_minutes_behind_processes_backlog() -> None:
    topology = JobTopology.of([TopologyVertex("source", 1, 128)])
    for lag, behind in ((29_900.0, False), (30_100.0, True)):
        observed = window([0.0, 10.0], source={"num_records_in": [0, 1000], "lag": [lag, lag], "load": [1.0, 1.0]})
        assert evaluate_vertices(CONFIG, topology, observed, restart_s=300.0).processing_backlog is behind


def test_busy_time_averaged_over_subtasks_comes_from_the_counter() -> None:
    config = AutoscalerConfig(metrics_busy_time_aggregator="AVG")
    observed = window(
        [0.0, 10.0],
        source={"num_records_in": [0, 1000], "accumulated_busy_time": [0, 8000], "load": [0.9, 0.9]},
    )
    state = evaluate_vertices(
        config, JobTopology.of([TopologyVertex("source", 2, 128)]), observed, restart_s=0.0
    ).vertices["source"]
    assert state.true_processing_per_s == pytest.approx(250.0)  # 100/s at 8000 ms / 10 s / 2 subtasks


def test_gauges_of_input_are_preferred_and_restarted_counters_give_no_rate() -> None:
    gauge = window(
        [0.0, 10.0], v={"num_records_in": [0, 1000], "num_records_in_per_second": [60, 100], "load": [0.5, 0.5]}
    )
    topology = JobTopology.of([TopologyVertex("v", 1, 128)])
    assert evaluate_vertices(CONFIG, topology, gauge, restart_s=0.0).vertices[
        "v"
    ].true_processing_per_s == pytest.approx(160.0)
    restarted = window([0.0, 10.0, 20.0], v={"num_records_in": [5000, 5500, 10], "load": [0.5, 0.5, 0.5]})
    assert math.isnan(evaluate_vertices(CONFIG, topology, restarted, restart_s=0.0).vertices["v"].demand.target_per_s)


def test_scaling_coefficient_by_hand() -> None:
    """P = 1, 2, 4 and R = 50, 80, 100: (50 + 160 + 400) / (50 * 21) = 0.58095, rounded up."""
    history = [Observation(1, 50.0), Observation(2, 80.0), Observation(4, 100.0)]
    assert scaling_coefficient(CONFIG, history) == 0.59
    assert scaling_coefficient(CONFIG, history[:2]) == 1.0
    assert scaling_coefficient(AutoscalerConfig(observed_scalability_coefficient_min=0.9), history) == 0.9
    # the latest of two observations at the smallest parallelism is the baseline
    again = [Observation(1, 100.0), *history]
    assert scaling_coefficient(CONFIG, again) == 0.65  # (100 + 610) / (50 * 22) = 0.64545
    assert scaling_coefficient(CONFIG, [Observation(1, math.nan)] * 3) == 1.0


def test_scale_factor_is_divided_by_alpha_and_cut() -> None:
    demand = RequiredRates(140.0)
    assert scale_factor(CONFIG, demand, 100.0, restart_s=0.0) == 2.0
    history = [Observation(1, 50.0), Observation(2, 80.0), Observation(4, 100.0)]
    scalable = AutoscalerConfig(observed_scalability_enabled=True)
    assert scale_factor(scalable, demand, 100.0, restart_s=0.0, history=history) == pytest.approx(2.0 / 0.59)
    assert scale_factor(CONFIG, demand, 1e9, restart_s=0.0) == pytest.approx(0.4)
    assert scale_factor(CONFIG, RequiredRates(0.0), math.inf, restart_s=0.0) == pytest.approx(0.4)
    assert scale_factor(AutoscalerConfig(scale_up_max_factor=2.0), demand, 1.0, restart_s=0.0) == 3.0
    assert math.isnan(scale_factor(CONFIG, demand, math.nan, restart_s=0.0))
    assert math.isnan(scale_factor(CONFIG, RequiredRates(0.0), 0.0, restart_s=0.0))


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(WindowError, match="at least one sample"):
        window([])
    with pytest.raises(WindowError, match="in order of time"):
        window([1.0, 1.0])
    with pytest.raises(WindowError, match="unknown metric 'lags'"):
        window([1.0], v={"lags": [1.0]})
    with pytest.raises(WindowError, match="one value for each"):
        window([1.0], v={"lag": [1.0, 2.0]})


def test_samples_of_an_unstable_job_and_old_ones_are_left_out() -> None:
    config = AutoscalerConfig(metrics_window_s=60.0, stabilization_interval_s=20.0)
    observed = window([float(t) for t in range(0, 200, 10)], v={"lag": [0.0] * 20})
    recent = observed.recent(config, 0.0)
    assert recent is not None
    assert (recent.times_s[0], recent.times_s[-1]) == (130.0, 190.0)
    young = observed.recent(config, 150.0)
    assert young is not None
    assert young.times_s[0] == 170.0
    assert observed.recent(config, 175.0) is None
    assert (observed.is_full(config, 110.0), observed.is_full(config, 111.0)) == (True, False)
