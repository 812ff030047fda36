"""The queueing model against what must hold for any fleet: conservation, capacity, backpressure, closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from include.domain.graph import GraphError
from lab.commands.simulated_jobs import load_simulated_jobs
from lab.simulation.capacity import compute_capacity_curve, compute_gains, find_needed_parallelism
from lab.simulation.control import CpuRule, CpuRuleOptions, FleetSnapshot
from lab.simulation.fleet import Fleet, pack
from lab.simulation.history import RunOptions, find_fitting_parallelism, simulate
from lab.simulation.spec import JobSpec, OperatorSpec, SpecError
from lab.simulation.state import COUNTERS, FleetState, RestartKind, begin_restart
from lab.simulation.step import advance

LIMIT = 1e-9


def chain(middle_per_s: float = 1000.0, **options: float) -> JobSpec:
    operators = (
        OperatorSpec("Source: a", (), 5000.0, 0.0),
        OperatorSpec("map", ("Source: a",), 4000.0, 0.0, selectivity=0.5),
        OperatorSpec("slow", ("map",), middle_per_s, 0.0),
        OperatorSpec("Sink: b", ("slow",), 3000.0, 0.0, selectivity=0.0),
    )
    return JobSpec("chain", operators, failures_per_week=0.0, **options)


def two_sources() -> JobSpec:
    operators = (
        OperatorSpec("Source: a", (), 5000.0, 0.0),
        OperatorSpec("Source: b", (), 5000.0, 0.0),
        OperatorSpec("join", ("Source: a", "Source: b"), 3000.0, 0.0),
        OperatorSpec("Sink: c", ("join",), 9000.0, 0.0, selectivity=0.0),
    )
    return JobSpec("join", operators, failures_per_week=0.0)


def started(fleet: Fleet, p: int = 1) -> FleetState:
    return FleetState.running(fleet, np.full(fleet.shape, p, dtype=np.int64), np.zeros(fleet.shape))


def at_source(fleet: Fleet, *rates: float) -> np.ndarray:
    grid = np.zeros(fleet.shape)
    grid[0, np.flatnonzero(fleet.is_source[0])] = rates
    return grid


def test_records_are_conserved_through_rescales_and_failures() -> None:
    jobs = [dataclasses.replace(job.spec, failures_per_week=40.0) for job in load_simulated_jobs()]
    fleet = pack(jobs)
    generator = np.random.default_rng(3)
    rates = np.where(fleet.is_source, generator.uniform(1e3, 3e4, (1500, *fleet.shape)), 0.0)
    rule = CpuRule([CpuRuleOptions(cooldown_s=600.0)] * len(jobs))
    history = simulate(fleet, rates, find_fitting_parallelism(fleet, rates[0], 0.6), rule, RunOptions(seed=5))
    final = history.final
    assert {restart.kind for restart in history.restarts} == {RestartKind.FAILURE, RestartKind.RESCALE}
    assert final.replayed.sum() > 0
    np.testing.assert_allclose(final.due_records, rates.sum(axis=0) * 60.0, rtol=1e-12)
    np.testing.assert_allclose(final.emitted - final.replayed + final.backlog, final.due_records, rtol=1e-9)


def test_no_operator_takes_more_than_its_capacity() -> None:
    fleet = pack([two_sources()])
    state = started(fleet)
    generator = np.random.default_rng(1)
    for _ in range(200):
        noise = generator.uniform(0.8, 1.2, fleet.shape)
        flow = advance(fleet, state, at_source(fleet, *generator.uniform(0.0, 4000.0, 2)), noise, 10.0)
        assert (flow.in_per_s <= flow.capacity_per_s * (1 + LIMIT)).all()
        np.testing.assert_allclose((flow.busy + flow.backpressured + flow.idle)[fleet.present], 1.0, atol=1e-9)
        assert (state.backlog >= 0).all()


def test_a_slow_operator_limits_the_source_and_presses_those_above_it() -> None:
    fleet = pack([chain(record_bytes=np.inf)])
    state = started(fleet)
    flow = advance(fleet, state, at_source(fleet, 3000.0), np.ones(fleet.shape), 10.0)
    np.testing.assert_allclose(flow.in_per_s[0], [2000.0, 2000.0, 1000.0, 1000.0])  # map halves, slow takes 1000/s
    assert state.backlog[0, 0] == pytest.approx(10_000.0)
    np.testing.assert_allclose(flow.backpressured[0], [0.6, 0.5, 0.0, 0.0])
    np.testing.assert_allclose(flow.idle[0], [0.0, 0.0, 0.0, 2 / 3])
    assert flow.busy[0, 2] == pytest.approx(1.0)


def test_below_saturation_nothing_waits() -> None:
    fleet = pack([chain()])
    state = started(fleet)
    flow = advance(fleet, state, at_source(fleet, 1200.0), np.ones(fleet.shape), 10.0)
    assert state.backlog.sum() == 0.0
    assert flow.backpressured.sum() == 0.0
    assert flow.busy[0, 2] == pytest.approx(0.6)


def test_two_sources_share_a_slow_join_in_proportion_and_leave_nothing_free() -> None:
    fleet = pack([dataclasses.replace(two_sources(), record_bytes=np.inf)])
    flow = advance(fleet, started(fleet), at_source(fleet, 4000.0, 2000.0), np.ones(fleet.shape), 10.0)
    np.testing.assert_allclose(flow.in_per_s[0], [2000.0, 1000.0, 3000.0, 3000.0])


def test_a_source_that_another_operator_holds_back_leaves_its_share_to_the_other() -> None:
    operators = (
        OperatorSpec("Source: a", (), 5000.0, 0.0),
        OperatorSpec("Source: b", (), 5000.0, 0.0),
        OperatorSpec("narrow", ("Source: a",), 500.0, 0.0),
        OperatorSpec("join", ("narrow", "Source: b"), 3000.0, 0.0, selectivity=0.0),
    )
    fleet = pack([JobSpec("job", operators)])
    flow = advance(fleet, started(fleet), at_source(fleet, 4000.0, 4000.0), np.ones(fleet.shape), 10.0)
    assert flow.in_per_s[0, 3] == pytest.approx(3000.0, rel=0.01)
    assert flow.in_per_s[0, 1] == pytest.approx(2500.0, rel=0.01)


@pytest.mark.parametrize("kind", [RestartKind.FAILURE, RestartKind.RESCALE])
def test_catch_up_takes_as_long_as_the_closed_form_says(kind: RestartKind) -> None:
    """R = D + load (replayed + D) / (capacity - load); a rescale replays nothing."""
    load, capacity, step = 1200.0, 2000.0, 1.0  # the operator `slow` takes half of what the source emits
    fleet = pack([chain(checkpoint_interval_s=60.0, state_bytes_per_record=0.0, restart_base_s=40.0, detection_s=0.0)])
    state, ones = started(fleet), np.ones(fleet.shape)
    while state.time_s < 300.0:
        advance(fleet, state, at_source(fleet, load), ones, step)
    event = begin_restart(fleet, state, 0, kind, at_s=300.0, target=state.parallelism[0], noise=0.0)
    down_s = event.down_until_s - event.down_from_s
    assert down_s == 40.0
    assert event.checkpoint_age_s == (60.0 if kind is RestartKind.FAILURE else 0.0)
    expected = down_s + load * (event.checkpoint_age_s + down_s) / (capacity - load)
    while state.backlog[0, 0] > 0.0 or state.time_s <= event.down_until_s:
        advance(fleet, state, at_source(fleet, load), ones, step)
    assert state.time_s - 300.0 == pytest.approx(expected, abs=2 * step)


def test_with_a_barrier_delay_checkpoints_follow_each_other_and_a_rescale_replays() -> None:
    """Interval 10 s, 25.4 s a checkpoint: triggered at 10.0, 35.4, 60.8; what came since 35.4 is processed again."""
    fleet = pack([chain(checkpoint_interval_s=10.0, state_bytes_per_record=0.0, barrier_delay_s=25.0)])
    state, ones = started(fleet), np.ones(fleet.shape)
    while state.time_s < 70.0:
        advance(fleet, state, at_source(fleet, 1000.0), ones, 0.2)
    assert state.checkpoints[0, :2, :2].ravel().tolist() == pytest.approx([35.4, 25.4, 10.0, 25.4])
    event = begin_restart(fleet, state, 0, RestartKind.RESCALE, at_s=70.0, target=state.parallelism[0], noise=0.0)
    assert event.checkpoint_age_s == pytest.approx(34.6)
    assert state.backlog[0, 0] == pytest.approx(34_600.0)
    assert (state.failures[0], state.restarts[0]) == (0, 1)
    with pytest.raises(SpecError, match="barrier_delay_s"):
        chain(barrier_delay_s=-1.0)


def test_counters_restart_at_zero_and_totals_do_not() -> None:
    fleet = pack([chain()])
    state = started(fleet)
    advance(fleet, state, at_source(fleet, 500.0), np.ones(fleet.shape), 60.0)
    assert state.records_in[0, 1] == 30_000.0
    assert state.records_out[0, 1] == 15_000.0
    emitted = state.emitted.copy()
    begin_restart(fleet, state, 0, RestartKind.RESCALE, at_s=60.0, target=np.array([2, 3, 4, 1]), noise=0.0)
    assert all((getattr(state, counter) == 0).all() for counter in COUNTERS)
    assert (state.emitted == emitted).all()
    assert state.parallelism[0].tolist() == [2, 3, 4, 1]


def test_capacity_is_monotone_and_inverted_exactly() -> None:
    for spec in (
        OperatorSpec("a", ("x",), 700.0, 0.05),
        OperatorSpec("q1", ("x",), 517572.0, 0.047474, -5.917e-4),  # ContTune's Q1: its formula explodes beyond p = 80
        OperatorSpec("bends", ("x",), 700.0, 0.05, 0.02),  # would fall beyond its best parallelism
    ):
        curve = compute_capacity_curve(spec, 128)
        assert (np.diff(curve) >= 0).all()
        assert np.isfinite(curve).all()
        for load in (1.0, 0.3 * curve[-1], 0.69 * curve[-1]):
            p = int(find_needed_parallelism(curve, np.array(load), 0.7))
            assert 0.7 * curve[p] >= load
            assert p == 1 or 0.7 * curve[p - 1] < load


def test_published_point_of_the_curve() -> None:
    q1 = OperatorSpec("q1", ("x",), 517572.0, 0.047474, -5.917e-4)
    assert compute_capacity_curve(q1, 32)[25] == pytest.approx(7e6, rel=0.04)  # table 5: 7e6 records/s need 25


def test_gains_follow_every_path() -> None:
    operators = (
        OperatorSpec("Source: a", (), 1.0),
        OperatorSpec("left", ("Source: a",), 1.0, selectivity=2.0),
        OperatorSpec("right", ("Source: a",), 1.0, selectivity=0.5),
        OperatorSpec("both", ("left", "right"), 1.0),
    )
    np.testing.assert_allclose(compute_gains(JobSpec("job", operators))[:, 0], [1.0, 1.0, 1.0, 2.5])


def test_wrong_descriptions_are_refused_by_name() -> None:
    with pytest.raises(SpecError, match="per_subtask_per_s"):
        OperatorSpec("x", (), 0.0)
    with pytest.raises(SpecError, match="those of a source"):
        OperatorSpec("map", ("Source: x",), 1.0, waits_in_poll=True)
    with pytest.raises(SpecError, match="behind a source"):
        OperatorSpec("Source: x", (), 1.0, burst_s=60.0)
    with pytest.raises(SpecError, match="finite and not negative"):
        OperatorSpec("Source: x", (), 1.0, output_shares={"map": -0.1})
    with pytest.raises(SpecError, match=r"names \['b'\], which it does not feed"):
        JobSpec("job", (OperatorSpec("a", (), 1.0, output_shares={"b": 0.5}),))
    with pytest.raises(GraphError, match="does not come before"):
        JobSpec("job", (OperatorSpec("a", ("b",), 1.0), OperatorSpec("b", (), 1.0)))
    with pytest.raises(SpecError, match="names must differ"):
        pack([chain(), chain()])
    with pytest.raises(SpecError, match="must divide"):
        RunOptions(step_s=7.0)


def test_the_cpu_rule_grows_at_once_and_shrinks_after_patience() -> None:
    rule = CpuRule([CpuRuleOptions(high=0.8, low=0.4, target=0.6, patience=3, cooldown_s=600.0)])

    def view(busy: float, settled_s: float = 1e6) -> FleetSnapshot:
        up, lag = np.array([True]), np.zeros(1)
        return FleetSnapshot(0.0, 0.0, np.array([[10]]), np.array([[busy]]), lag, up, np.array([settled_s]))

    assert rule(view(0.9))[0, 0] == 15
    assert rule(view(0.9, settled_s=100.0))[0, 0] == 10
    assert [int(rule(view(0.3))[0, 0]) for _ in range(3)] == [10, 10, 5]


def test_draws_of_a_job_do_not_depend_on_its_neighbours() -> None:
    jobs = [job.spec for job in load_simulated_jobs()[:3]]
    rates = {job.name: np.random.default_rng(1).uniform(1e3, 2e4, 300) for job in jobs}

    def records(specs: list[JobSpec]) -> np.ndarray:
        fleet = pack(specs)
        grid = np.zeros((300, *fleet.shape))
        for row, spec in enumerate(specs):
            grid[:, row] = rates[spec.name][:, None] * fleet.is_source[row]
        rule = CpuRule([CpuRuleOptions()] * len(specs))
        history = simulate(fleet, grid, find_fitting_parallelism(fleet, grid[0], 0.6), rule, RunOptions(seed=2))
        return history.samples.records_out[:, [s.name for s in specs].index(jobs[0].name), : len(jobs[0].operators)]

    np.testing.assert_allclose(records(jobs), records(jobs[:1]), rtol=1e-12)


def test_the_catalogue_needs_eight_to_thirty_slots_at_peak() -> None:
    jobs = load_simulated_jobs()
    assert len(jobs) >= 12
    assert all(3 <= len(job.spec.operators) <= 8 for job in jobs)
    fleet = pack([job.spec for job in jobs])
    from lab.simulation.catalogue import find_peaks

    need = find_fitting_parallelism(fleet, find_peaks(fleet, jobs), 0.8).max(axis=1)
    assert need.min() >= 8
    assert need.max() <= 30
    load = fleet.network.compute_load(find_peaks(fleet, jobs))
    assert (load[fleet.present] > 0).all()


def test_checkpoints_are_kept_newest_first_at_their_interval() -> None:
    fleet = pack([chain(checkpoint_interval_s=90.0)])
    state = started(fleet)
    for _ in range(60):
        advance(fleet, state, at_source(fleet, 1000.0), np.ones(fleet.shape), 60.0)
    triggers = state.checkpoints[0, :, 0]
    assert (np.diff(triggers) == -90.0).all()
    assert state.time_s - triggers[0] <= 90.0 + 60.0
    assert state.completed[0] == triggers[0] / 90.0
    assert state.done_position[0, 0] == pytest.approx(1000.0 * triggers[0])  # the source's offset at the trigger
    age_s = state.time_s - triggers[0]
    event = begin_restart(
        fleet, state, 0, RestartKind.FAILURE, at_s=state.time_s, target=state.parallelism[0], noise=0.0
    )
    assert event.checkpoint_age_s == age_s
    assert state.backlog[0, 0] == pytest.approx(1000.0 * age_s)
