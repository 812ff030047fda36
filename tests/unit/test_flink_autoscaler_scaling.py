"""Rules 9-13 of the Flink autoscaler: alignment, waiting scale-downs, effectiveness, gates and whole cycles."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.policies.flink_autoscaler.alignment import ParallelismLimits, align
from lab.policies.flink_autoscaler.autoscaler_memory import (
    AutoscalerMemory,
    DelayedRecommendation,
    RestartTime,
    Scaling,
)
from lab.policies.flink_autoscaler.config import Alignment, AutoscalerConfig, Release
from lab.policies.flink_autoscaler.evaluate import Evaluation
from lab.policies.flink_autoscaler.excluded_periods import in_period
from lab.policies.flink_autoscaler.gates import Resources
from lab.policies.flink_autoscaler.job_scaling import ScalingPlan, decide, decide_from_samples
from lab.policies.flink_autoscaler.options import ConfigError
from lab.policies.flink_autoscaler.target_capacity import Bounds, RequiredRates, bounds
from lab.policies.flink_autoscaler.topology import JobTopology, TopologyVertex
from lab.policies.flink_autoscaler.vertex_scaling import (
    VertexState,
    add_recommendation,
    due_recommendation,
    scale_vertex,
)
from lab.policies.flink_autoscaler.window import MetricWindow
from models.policies.memory import dump, load

CONFIG = AutoscalerConfig()
NO_RESTART = AutoscalerConfig(restart_time_s=0.0)
NOW_S = 1_700_000_000.0
COUNTS = st.integers(1, 300)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from(Alignment))
def test_alignment_is_a_divisor_of_its_region_or_what_the_mode_says(
    spread: int, current: int, target: int, upper: int, mode: Alignment
) -> None:
    """The region is scanned one by one here; the code works with divisors."""
    limits = ParallelismLimits(1, upper, spread)
    assume(target <= limits.highest and target != current)
    region = range(target, (limits.highest if target > current else min(current, limits.highest)) + 1)
    reducing = mode in (Alignment.BALANCED, Alignment.LEGACY_MAXIMIZE_UTILISATION)
    fits = [p for p in region if spread % p == 0 or (reducing and spread // p < spread // target)]
    result = align(mode, current, target, limits, 0)
    if mode is Alignment.OFF:
        assert result == target
    elif fits:
        assert result == fits[0]
    elif not mode.startswith("LEGACY"):
        assert result == target
    else:
        assert result == current or (result - current) * (target - current) > 0
        assert result <= target


def test_partitions_bound_a_source_below_its_key_groups() -> None:
    limits = ParallelismLimits(1, 200, 720)
    assert align(Alignment.LEGACY_EVENLY_SPREAD, 10, 20, limits, 15) == 15
    assert align(Alignment.LEGACY_EVENLY_SPREAD, 10, 13, limits, 0) == 15
    assert (
        align(Alignment.BALANCED, 10, 13, ParallelismLimits(1, 200, 127), 0) == 15
    )  # floor(127 / p) falls from 9 to 8


@given(st.lists(st.tuples(st.floats(0, 50), COUNTS), min_size=1, max_size=30), st.floats(1, 200))
def test_a_due_scale_down_takes_the_highest_of_its_window(steps: list[tuple[float, int]], interval_s: float) -> None:
    delayed, now_s, observed = None, 0.0, []
    for gap, parallelism in steps:
        now_s += gap
        observed.append((now_s, parallelism))
        delayed = add_recommendation(delayed, DelayedRecommendation(now_s, parallelism, True))
        chosen = due_recommendation(delayed, now_s, interval_s)
        if now_s - interval_s < observed[0][0]:
            assert chosen is None
        else:
            assert chosen is not None
            assert chosen.parallelism == max(p for at, p in observed if at >= now_s - interval_s)


def state(parallelism: int, target: float, rate: float, **kwargs: object) -> VertexState:
    demand = RequiredRates(target)
    limits = bounds(CONFIG, demand, restart_s=0.0, processing_backlog=False)
    return replace(VertexState(parallelism, 128, demand, rate, limits), **kwargs)  # type: ignore[arg-type]


def test_scale_up_is_immediate_and_scale_down_waits() -> None:
    """700/s at 0.7 need 1000/s: ten times 100/s.  70/s need 100/s: a tenth, but by no more than 60% at once."""
    up, waiting = scale_vertex(CONFIG, state(1, 700.0, 100.0), restart_s=0.0, now_s=0.0)
    assert (up.parallelism, up.outside_bounds, up.expected_per_s, waiting) == (10, True, 1000.0, None)
    down, waiting = scale_vertex(CONFIG, state(10, 70.0, 1000.0), restart_s=0.0, now_s=0.0)
    assert (down.changes, waiting is not None) == (False, True)
    later, _ = scale_vertex(CONFIG, state(10, 70.0, 1000.0), restart_s=0.0, now_s=3600.0, delayed=waiting)
    assert (later.parallelism, later.outside_bounds, later.expected_per_s) == (4, True, 400.0)
    _, waiting = scale_vertex(CONFIG, state(10, 700.0, 1000.0), restart_s=0.0, now_s=60.0, delayed=waiting)
    assert waiting is None


def test_an_ineffective_scale_up_is_not_repeated() -> None:
    """From 5 to 10 instances 100/s were to become 200/s; 109/s are 9% of the gain, 110/s are 10%."""
    config = AutoscalerConfig(scaling_effectiveness_detection_enabled=True)
    past = [Scaling(0.0, 5, 10, 100.0, 200.0)]
    for rate, blocked in ((109.0, True), (110.0, False), (50.0, True)):
        change, _ = scale_vertex(config, state(10, 700.0, rate), restart_s=0.0, now_s=9.0, history=past)
        assert change.changes is not blocked
    for other in ([replace(past[0], new_parallelism=20)], [replace(past[0], parallelism=12)], []):
        change, _ = scale_vertex(config, state(10, 700.0, 109.0), restart_s=0.0, now_s=9.0, history=other)
        assert change.changes
    off, _ = scale_vertex(CONFIG, state(10, 700.0, 109.0), restart_s=0.0, now_s=9.0, history=past)
    assert off.changes


def job(source: VertexState, sink: VertexState) -> tuple[JobTopology, Evaluation]:
    topology = JobTopology.of(
        [
            TopologyVertex("source", source.parallelism, 128),
            TopologyVertex("sink", sink.parallelism, 128, {"source": "HASH"}),
        ]
    )
    return topology, Evaluation({"source": source, "sink": sink}, {}, False)


def test_a_vertex_inside_its_bounds_is_only_scaled_along() -> None:
    """Both would change; the sink's rate of 900 is inside its bounds 700 .. 1750, the source's 600 is not."""
    inside = state(10, 700.0, 900.0)
    topology, evaluation = job(inside, inside)
    plan, memory = decide(NO_RESTART, topology, evaluation, AutoscalerMemory(), now_s=NOW_S)
    assert plan == ScalingPlan({}, "every vertex that would change is inside its utilisation bounds")
    assert memory == AutoscalerMemory()
    plan, memory = decide(NO_RESTART, *job(state(10, 700.0, 600.0), inside), AutoscalerMemory(), now_s=NOW_S)
    assert plan.parallelism(topology) == {"source": 17, "sink": 12}
    assert memory.history["sink"] == (Scaling(NOW_S, 10, 12, 900.0, 1080.0),)
    assert memory.restarts == (RestartTime(NOW_S),)


def test_gates_name_their_reason() -> None:
    topology, evaluation = job(state(10, 700.0, 600.0), state(10, 700.0, 600.0))

    def reason(resources: Resources = Resources(), **options: object) -> str | None:  # noqa: B008
        plan, memory = decide(
            AutoscalerConfig.from_options({"restart.time": "0 s", **options}),
            topology,
            evaluation,
            AutoscalerMemory(),
            now_s=NOW_S,
            resources=resources,
        )
        assert (plan.reason is None) == bool(plan.changes) == bool(memory.history)
        return plan.reason

    assert reason() is None
    assert reason(**{"scaling.enabled": False}) == "scaling.enabled is false"
    assert "excluded period" in str(reason(**{"excluded.periods": ["22:00-23:00"]}))  # NOW_S is 22:13:20
    assert "GC pressure" in str(reason(Resources(gc_pressure=0.3), **{"memory.gc-pressure.threshold": 0.2}))
    assert "heap usage" in str(reason(Resources(heap_usage=0.9), **{"memory.heap-usage.threshold": 0.8}))
    # 17 slots of 2 make 8 whole task managers
    manager = Resources(cpu=1.0, memory_bytes=1 << 30, slots=2)
    assert reason(manager, **{"quota.cpu": 8}) is None
    assert reason(manager, **{"quota.cpu": 7}) == "8 CPUs would exceed the quota of 7"
    assert "bytes would exceed" in str(reason(manager, **{"quota.memory": "7 gb"}))
    excluded = AutoscalerConfig(vertex_exclude_ids=("source", "sink"))
    assert decide(excluded, topology, evaluation, AutoscalerMemory(), now_s=NOW_S)[0] == ScalingPlan({})


@pytest.mark.parametrize(
    ("period", "at", "inside"),
    [
        ("09:00-17:30", "2026-11-20T09:00:00", True),
        ("09:00-17:30", "2026-11-20T17:30:00", True),
        ("09:00-17:30", "2026-11-20T17:31:00", False),
        ("9:00:30-9:01:00.5", None, None),
        ("* * * ? * MON-FRI", "2026-11-20T03:00:00", True),  # a Friday
        ("* * * ? * MON-FRI", "2026-11-21T03:00:00", False),
        ("* * * ? * FRI-MON", "2026-11-22T03:00:00", True),
        ("* 0/20 3-4 ? * 6", "2026-11-20T04:40:59", True),
        ("* 0/20 3-4 ? * 6", "2026-11-20T04:41:00", False),
        ("* * * L * ?", "2028-02-29T00:00:00", True),
        ("* * * L-1 * ?", "2028-02-28T00:00:00", True),
        ("* * * 15W NOV ?", "2026-11-16T00:00:00", True),  # the 15th is a Sunday
        ("* * * LW * ?", "2026-10-30T00:00:00", True),  # the 31st is a Saturday
        ("* * * ? * 6L", "2026-11-27T00:00:00", True),
        ("* * * ? * FRI#3", "2026-11-20T00:00:00", True),
        ("* * * ? * FRI#2", "2026-11-20T00:00:00", False),
        ("* * * ? * * 2027", "2026-11-20T00:00:00", False),
        ("09:00-17:00 && * * * ? * MON-FRI", "2026-11-20T12:00:00", True),
        ("* * * ? * MON-FRI && 09:00-17:00", "2026-11-20T18:00:00", False),
        ("17:00-09:00", None, None),
        ("25:00-26:00", None, None),
        ("* * * * *", None, None),
        ("* * * 3 * 3", None, None),
        ("* 0/0 * ? * *", None, None),
        ("* 61 * ? * *", None, None),
        ("09:00-10:00 && 11:00-12:00", None, None),
        ("soon", None, None),
    ],
)
def test_excluded_periods(period: str, at: str | None, inside: bool | None) -> None:
    if at is None:
        with pytest.raises(ConfigError, match="excluded period"):
            in_period(period, datetime(2026, 11, 20, tzinfo=UTC))
    else:
        assert in_period(period, datetime.fromisoformat(at).replace(tzinfo=UTC)) is inside


def test_history_is_trimmed_and_restarts_are_measured() -> None:
    config = AutoscalerConfig(restart_time_tracking_enabled=True)
    past = tuple(Scaling(NOW_S - age, 1, 2, 10.0, 20.0) for age in (90_000.0, 400.0, 300.0, 200.0, 100.0))
    memory = AutoscalerMemory(history={"v": past}, restarts=(RestartTime(NOW_S - 300, 40.0), RestartTime(NOW_S - 100)))
    assert memory.drop_old(config, NOW_S).history["v"] == past[2:]
    assert memory.drop_old(config, NOW_S + 200_000).history["v"] == past[-1:]
    assert memory.record_restart(NOW_S - 50, {"v": 3}) == memory
    done = memory.record_restart(NOW_S - 50, {"v": 2})
    assert done.restarts[-1] == RestartTime(NOW_S - 100, 50.0)
    assert (memory.restart_s(config), done.restart_s(config), done.restart_s(CONFIG)) == (40.0, 50.0, 300.0)
    assert replace(done, restarts=(RestartTime(0.0, 5000.0),)).restart_s(config) == 900.0


def test_a_cycle_waits_for_a_full_window_then_scales() -> None:
    config = AutoscalerConfig(metrics_window_s=60.0, stabilization_interval_s=0.0)
    topology = JobTopology.of([TopologyVertex("source", 1, 128)])
    times = np.arange(0.0, 61.0, 10.0)
    busy = {"source": {"num_records_in": times * 700, "lag": times * 20, "load": np.ones(7)}}
    early = MetricWindow(times[:-1], {"source": {name: series[:-1] for name, series in busy["source"].items()}})
    plan, memory = decide_from_samples(config, topology, early, AutoscalerMemory(), running_since_s=0.0)
    assert plan == ScalingPlan({}, "the metrics window is not full yet")
    plan, memory = decide_from_samples(config, topology, MetricWindow(times, busy), memory, running_since_s=0.0)
    # 720/s arrive, the lag is 1200: 1200 / 1800 + 720 * 300 / 1800 + 720 / 0.7 = 1149 against 700
    assert plan.parallelism(topology) == {"source": 2}
    assert load(AutoscalerMemory, dump(memory)) == memory


RATES = st.sampled_from([0.0, 1e-9, math.nan, math.inf, 1e12]) | st.floats(0, 1e6)
SERIES = st.lists(RATES, min_size=4, max_size=4).map(np.array)
METRIC_NAMES = ("lag", "load", "num_records_in", "num_records_out", "observed_tpr", "num_records_in_per_second")
METRICS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(METRIC_NAMES, SERIES),
)


@given(
    st.dictionaries(st.sampled_from("abc"), METRICS, max_size=3),
    st.tuples(COUNTS, COUNTS, COUNTS),
    st.sampled_from([0, 1, 7, 12, 4000]),
    st.sampled_from(Alignment),
    st.booleans(),
)
def test_no_measurement_breaks_a_cycle_and_every_plan_is_feasible(
    metrics: dict[str, dict[str, np.ndarray]],
    parallelism: tuple[int, int, int],
    partitions: int,
    alignment: Alignment,
    switches: bool,
) -> None:
    config = AutoscalerConfig(
        metrics_window_s=30.0,
        stabilization_interval_s=0.0,
        scale_down_interval_s=0.0 if switches else 3600.0,
        observed_scalability_enabled=switches,
        scaling_effectiveness_detection_enabled=switches,
        alignment=alignment,
    )
    topology = JobTopology.of(
        [
            TopologyVertex("a", min(parallelism[0], 128), 128, {}, partitions),
            TopologyVertex("b", min(parallelism[1], 128), 128, {"a": "HASH"}),
            TopologyVertex("c", parallelism[2], 300, {"a": "REBALANCE", "b": "HASH"}),
        ]
    )
    observed = MetricWindow(np.arange(0.0, 40.0, 10.0), metrics)
    memory = AutoscalerMemory(
        history={"a": (Scaling(0.0, 1, topology.vertices[0].parallelism, math.inf, math.inf),) * 3}
    )
    plan, after = decide_from_samples(config, topology, observed, memory, running_since_s=0.0)
    assert decide_from_samples(config, topology, observed, memory, running_since_s=0.0) == (plan, after)
    for vertex in topology.vertices:
        wanted = plan.parallelism(topology)[vertex.name]
        assert 1 <= wanted <= max(vertex.parallelism, min(200, vertex.max_parallelism))
        known = metrics.get(vertex.name)
        assert known or wanted == vertex.parallelism
    assert load(AutoscalerMemory, dump(after)) == after


def idle_vertex(rate_per_s: float) -> VertexState:
    """Return a vertex of 10 that needs 700/s with bounds of 500/s and 1000/s."""
    return VertexState(10, 128, RequiredRates(490.0), rate_per_s, Bounds(500.0, 1000.0))


def test_release_1_10_takes_what_is_recommended_when_the_wait_is_over() -> None:
    result = {}
    for release in Release:
        config = AutoscalerConfig(restart_time_s=0.0, release=release)
        delayed = None
        for now_s, rate in ((0.0, 1200.0), (1800.0, 1100.0), (3600.0, 1600.0)):
            change, delayed = scale_vertex(config, idle_vertex(rate), restart_s=0.0, now_s=now_s, delayed=delayed)
            if now_s < 3600:
                assert not change.outside_bounds
        result[release] = change.parallelism
    assert result == {Release.CURRENT: 7, Release.V1_10: 5}
