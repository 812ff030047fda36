"""The profiling phase: its rule, its order, and what a simulated cluster gives it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.settings import Planner, Profiling
from lab.policies.phoebe import latency_model
from lab.policies.phoebe.capacity_profile import CapacityRegression
from lab.profiling.profiling import (
    CatchUp,
    ProfilingOptions,
    Replay,
    first_state,
    next_task,
    profile,
    record,
    record_capacity,
    valid_scale_outs,
    worker_seconds,
)
from lab.profiling.rows import Measurement
from lab.simulation.end_to_end import EndToEnd
from lab.simulation.profiling_adapter import SimulatedProfiling
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.stages.profiling.adapters import ProfiledSubject, adapter
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel

OPTIONS = ProfilingOptions()
SHORT = ProfilingOptions(settle_s=120, window_s=60)


def rows(latency: Mapping[int, float]) -> dict[int, Measurement]:
    return {s: Measurement(s, 20_000.0, value) for s, value in latency.items()}


def job(per_worker: float = 16_000.0) -> JobSpec:
    curve = tuple(per_worker * s for s in range(1, 25))
    return JobSpec(
        "job",
        (OperatorSpec("pipeline", (), curve[0], measured_per_s=curve),),
        slots_max=24,
        checkpoint_interval_s=10.0,
        fetch_delay_s=0.0,
    )


def test_sampled_scale_outs_are_those_of_the_paper() -> None:
    assert OPTIONS.samples() == (2, 5, 8, 11, 14, 17, 20, 23)


def test_more_scale_outs_than_whole_numbers_are_all_of_them() -> None:
    assert ProfilingOptions(scale_out_min=1, scale_out_max=4, scale_outs=8).samples() == (1, 2, 3, 4)


def test_rates_grow_by_a_step_until_nothing_runs_and_then_comes_the_catch_up() -> None:
    state = first_state(OPTIONS)
    assert next_task(OPTIONS, state) == Replay(20_000.0, OPTIONS.samples())
    state = record(OPTIONS, state, rows(dict.fromkeys(state.active, 1000.0)))
    assert next_task(OPTIONS, state) == Replay(40_000.0, OPTIONS.samples())
    state = record(OPTIONS, state, {})
    assert state.active == ()
    assert next_task(OPTIONS, state) == CatchUp(OPTIONS.samples())
    state = record_capacity(state, {2: 37_000.0, 5: math.nan})
    assert [point.scale_out for point in state.capacity] == [2]
    assert next_task(OPTIONS, state) is None


def test_a_deployment_far_from_the_majority_is_invalid() -> None:
    """36289 ms is 35 times 1000 away; a factor below 3 is not far (|L_i - L_j| / L_j < 2)."""
    assert valid_scale_outs(rows({2: 36_289.0, 5: 1036.0, 8: 2900.0, 11: 1058.0}), ()) == {5, 8, 11}


def test_half_of_the_deployments_may_saturate_at_once() -> None:
    """A low latency is near every higher one, since the distance is relative to the other."""
    assert valid_scale_outs(rows({2: 50_000.0, 5: 50_000.0, 8: 1000.0, 11: 1000.0}), ()) == {8, 11}


def test_ties_between_counts_are_kept() -> None:
    assert valid_scale_outs(rows({2: 2000.0, 5: 1500.0, 8: 1000.0}), ()) == {2, 5, 8}


@pytest.mark.parametrize(("latency", "valid"), [(1300.0, True), (3500.0, True), (3700.0, False)])
def test_two_deployments_are_judged_by_their_own_past(latency: float, valid: bool) -> None:
    """Past 1000, 1100: the line gives 1200, and 3600 is the first latency that is 2.0 away."""
    before = [Measurement(23, 0.0, 1000.0), Measurement(20, 0.0, 9.0), Measurement(23, 0.0, 1100.0)]
    assert (23 in valid_scale_outs(rows({23: latency}), before)) is valid


def test_a_falling_past_does_not_ask_for_a_latency_below_what_was_seen() -> None:
    before = [Measurement(23, 0.0, 2000.0), Measurement(23, 0.0, 100.0)]
    assert valid_scale_outs(rows({23: 150.0}), before) == {23}


@given(st.dictionaries(st.integers(1, 30), st.floats(allow_nan=True, allow_infinity=True), max_size=9))
def test_any_latencies_give_some_of_the_measured(latency: dict[int, float]) -> None:
    assert valid_scale_outs(rows(latency), ()) <= set(latency)


class Refusing:
    """A cluster whose deployments never answer."""

    def __init__(self) -> None:
        self.stopped: set[int] = set()
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def deploy(self, scale_outs: Sequence[int]) -> None:
        self.deployed = tuple(scale_outs)

    def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
        return {}

    def stop(self, scale_out: int) -> None:
        self.stopped.add(scale_out)

    def catch_up(self, scale_outs: Sequence[int], settle_s: int, window_s: int) -> Mapping[int, float]:
        return {}


def test_a_cluster_that_measures_nothing_ends_the_phase_with_every_deployment_stopped() -> None:
    cluster = Refusing()
    result = profile(cluster, OPTIONS)
    assert (result.rows, result.capacity) == ((), ())
    assert cluster.stopped == set(OPTIONS.samples())
    assert cluster.closed


def test_deployments_are_closed_however_the_phase_ends() -> None:
    class Broken(Refusing):
        def replay(self, rate_per_s: float, settle_s: int, window_s: int) -> Mapping[int, Measurement]:
            raise ConnectionError("gone")

    cluster = Broken()
    with pytest.raises(ConnectionError):
        profile(cluster, OPTIONS)
    assert cluster.closed


def test_simulated_phase_finds_the_capacity_and_where_each_scale_out_saturates() -> None:
    result = profile(SimulatedProfiling(job(), EndToEnd(1050.0, 0.05), seed=3), SHORT)
    capacity = {point.scale_out: point.capacity_per_s for point in result.capacity}
    assert capacity == pytest.approx({s: 16_000.0 * s for s in SHORT.samples()})
    for scale_out in SHORT.samples():
        mine = [row for row in result.rows if row.scale_out == scale_out]
        assert max(row.throughput_per_s for row in mine) == pytest.approx(16_000.0 * scale_out)
        assert all(row.latency_ms < 1500.0 for row in mine[:-2])
    line = CapacityRegression.fit(list(capacity), list(capacity.values()))
    assert line.per_s(24) == pytest.approx(384_000.0, rel=0.01)
    model = latency_model.fit(result.rows)
    assert model is not None
    _, classes = model.predict(range(2, 25), 100_000.0)
    assert classes[0] == 1
    assert classes[-1] == 0


def test_deployments_deviate_from_the_curve_by_their_machines_and_the_seed_decides() -> None:
    def capacities(seed: int) -> list[float]:
        cluster = SimulatedProfiling(job(), EndToEnd(1050.0, 0.05), capacity_deviation=0.04, seed=seed)
        return list(cluster.catch_up(OPTIONS.samples(), 0, 30).values())

    assert capacities(1) == capacities(1)
    assert capacities(1) != capacities(2)
    assert np.abs(np.array(capacities(1)) / 16_000.0 / OPTIONS.samples() - 1.0).max() < 0.2


def test_cost_counts_every_deployment_of_every_step() -> None:
    cluster = SimulatedProfiling(job(), EndToEnd(1050.0, 0.0))
    result = profile(cluster, SHORT)
    steps = sum(row.scale_out for row in result.rows)
    assert worker_seconds(result, SHORT) == 180.0 * (steps + sum(SHORT.samples()))


def test_nothing_can_be_measured_before_deploying() -> None:
    with pytest.raises(RuntimeError, match="deploy"):
        SimulatedProfiling(job(), EndToEnd(1050.0, 0.0)).replay(1.0, 0, 10)


@pytest.mark.parametrize("wrong", [{"scale_out_min": 0}, {"scale_outs": 1}, {"window_s": 0}, {"rate_step_per_s": 0.0}])
def test_settings_that_cannot_be_profiled_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"needed|must be"):
        ProfilingOptions(**wrong)  # type: ignore[arg-type]


def test_a_job_whose_side_deployments_are_not_described_is_refused_before_any_request() -> None:
    """Nothing listens at that address: a request would fail with another error."""
    settings = Profiling(adapter="flink", rest_url="http://127.0.0.1:9")
    graph = job().graph()
    models = JobModels({}, {}, RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5), LatencyModel(np.zeros(0), np.zeros(0)))
    subject = ProfiledSubject("prod", "orders", graph, models, 8, Planner(), settings, 0)
    with pytest.raises(ValueError, match=r'profiling.jobs."prod/orders"'):
        adapter("flink")(subject)
