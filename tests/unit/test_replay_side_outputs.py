"""The job with side outputs: what policies come to, judged by a simulation of its own, not by what they believe."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.replay.replay_jobs import read_job
from lab.replay.candidate_policies import build_candidates
from lab.replay.conditions import Conditions, Disturbances
from lab.replay.engine import Engine, EngineSetting
from lab.replay.random_draws import RandomDraws
from lab.replay.replay_run import ReplayRun
from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec, SourceCounters, SpecError
from lab.simulation.testbed import Testbed
from models.arrays import Floats, Ints

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC
EXACT = Conditions(disturbances=Disturbances(failures_per_day=0, measurement_noise=0.0, capacity_noise=0.0))
SPEC = read_job("side_outputs").spec
LOAD_PER_S = np.array([30_000.0, 1_500.0])


def half_day() -> Workload:
    """An hour at the full load, five at half of it, six at the full load: models are trained at 02:30."""
    rates = np.tile(LOAD_PER_S, (4320, 1))
    rates[360:2160] *= 0.5
    return Workload(SPEC, MONDAY, 10, rates)


def find_final(policy: str) -> Ints:
    run = ReplayRun(half_day(), build_candidates([policy], half_day(), EXACT), [0], EXACT)
    run.run()
    return run.state.engine.rows.parallelism[0].copy()


def sustains(parallelism: Ints, rates_per_s: Floats = LOAD_PER_S) -> bool:
    """Whether no backlog grows in half an hour at a parallelism, (O,)."""
    testbed = Testbed([SPEC], parallelism[None], step_s=10.0)
    grid = np.zeros(testbed.fleet.shape)
    grid[0, np.flatnonzero(testbed.fleet.is_source[0])] = rates_per_s
    testbed.run(grid, 1800.0)
    return bool(testbed.state.backlog.sum() < 1e-6 * rates_per_s.sum() * 1800.0)


def with_one_less(parallelism: Ints, operator: int) -> Ints:
    less = parallelism.copy()
    less[operator] -= 1
    return less


def test_ds2_finds_the_least_parallelism_that_sustains_the_load() -> None:
    result = find_final("ds2")
    assert sustains(result)
    for place, operator in enumerate(SPEC.operators):
        if operator.upstream and result[place] > 1:  # DS2 leaves sources as they are
            assert not sustains(with_one_less(result, place)), operator.name


def test_the_planner_stays_within_its_head_room_of_the_least() -> None:
    result = find_final("planner")
    assert sustains(result)
    room = 1.0 / EXACT.planner.capacity.target_utilisation
    for place, operator in enumerate(SPEC.operators):
        if result[place] > 1:  # one less, and the load with the head room that settings ask for is too much
            assert not sustains(with_one_less(result, place), room * LOAD_PER_S), operator.name


@pytest.mark.parametrize("policy", ["flink_autoscaler", "big_ds2"])
def test_others_do_not_count_a_record_twice(policy: str) -> None:
    """What a tenth of the records needs is not what all of them need."""
    result = dict(zip(SPEC.graph().names, find_final(policy).tolist(), strict=True))
    assert sustains(np.array(list(result.values())))
    assert result["express"] <= 4
    assert result["standard"] <= 19


def test_a_replay_refuses_bursts_by_name() -> None:
    operators = (
        OperatorSpec("in", (), 100.0),
        OperatorSpec("w", ("in",), 100.0, burst_s=60.0),
        OperatorSpec("s", ("w",), 9.0),
    )
    load = Workload(JobSpec("bursts", operators), MONDAY, 10, np.ones((360, 1)))
    with pytest.raises(SpecError, match=r"burst_s of \['w'\]"):
        ReplayRun(load, [], [0], EXACT)


def test_a_source_that_waits_in_poll_is_busy_in_a_replay_too() -> None:
    operators = (
        OperatorSpec("in", (), 100.0, 0.0, waits_in_poll=True, counts=SourceCounters.TASK),
        OperatorSpec("out", ("in",), 100.0, 0.0, selectivity=0.0),
    )
    load = Workload(JobSpec("waits", operators), MONDAY, 10, np.full((360, 1), 20.0))
    draws = [RandomDraws.from_seed(0, 12, 2, EXACT.cadence, EXACT.disturbances)]
    engine = Engine(
        EngineSetting(load, EXACT.cadence, EXACT.disturbances, draws, 60.0), np.zeros(1, int), np.ones(2, int)
    )
    metrics = engine.advance()
    np.testing.assert_allclose(metrics.busy[0], [1.0, 0.2])
    np.testing.assert_allclose(metrics.idle[0], [0.0, 0.8])
    np.testing.assert_allclose(metrics.true_in_per_s[0], [20.0, 100.0])
