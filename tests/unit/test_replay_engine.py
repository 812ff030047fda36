"""The engine of the replay against the simulator that it stands for, and against arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.replay.conditions import ConditionsError, DecisionSchedule, Disturbances
from lab.replay.engine import Engine, EngineSetting
from lab.replay.random_draws import RandomDraws
from lab.replay.workload import Workload, find_sufficient
from lab.simulation.fleet import pack
from lab.simulation.queueing import QueueingNetwork
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed

QUIET = Disturbances(
    failures_per_day=0,
    measurement_noise=0.0,
    capacity_noise=0.0,
    rescale_downtime_s=(40.0, 40.0),
    failure_downtime_sd=0.0,
    waits_for_checkpoint=False,
)
LINE = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 1000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.0, selectivity=0.5),
        OperatorSpec("out", ("work",), 300.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=8,
)
PAIR = JobSpec(
    "pair",
    (
        OperatorSpec("a", (), 900.0, contention=0.0),
        OperatorSpec("b", (), 700.0, contention=0.0),
        OperatorSpec("parse", ("a",), 120.0, contention=0.01),
        OperatorSpec("join", ("parse", "b"), 100.0, contention=0.02),
    ),
    slots_max=8,
)


def engine(
    spec: JobSpec, rates: np.ndarray, parallelism: list[list[int]], disturbances: Disturbances = QUIET
) -> Engine:
    workload = Workload(spec, 0, 10, np.asarray(rates, float))
    cadence = DecisionSchedule(poll_s=300)
    draws = [RandomDraws.from_seed(0, len(rates) // cadence.steps, len(spec.operators), cadence, disturbances)]
    made = Engine(
        EngineSetting(workload, cadence, disturbances, draws, 60.0),
        np.zeros(len(parallelism), np.int64),
        np.array(parallelism[0]),
    )
    made.rows.parallelism[:] = parallelism
    return made


@pytest.mark.parametrize(
    ("spec", "base", "parallelism"),
    [
        (LINE, [300.0], [[1, 4, 1], [1, 3, 1], [1, 2, 2]]),
        (PAIR, [250.0, 150.0], [[1, 1, 3, 6], [1, 1, 2, 4], [1, 1, 1, 2]]),
    ],
)
def test_windows_are_those_of_the_simulator(spec: JobSpec, base: list[float], parallelism: list[list[int]]) -> None:
    steps = 30 * 12
    wave = 1.0 + 0.25 * np.sin(np.arange(steps) / 40.0)
    rates = wave[:, None] * np.array(base)
    ours = engine(spec, rates, parallelism)
    bed = Testbed(
        [JobSpec(f"{n}", spec.operators, slots_max=8) for n in range(3)],
        np.array(parallelism),
        step_s=10.0,
        has_buffers=False,
    )
    wide = np.zeros((steps, 3, len(spec.operators)))
    wide[:, :, : len(base)] = rates[:, None, :]
    for number in range(12):
        if number == 4:
            ours.rescale(2, np.array(parallelism[0]))
            bed.rescale(2, np.array(parallelism[0]), downtime_s=40.0)
        result, window = ours.advance(), bed.run(wide[30 * number : 30 * (number + 1)])
        assert np.array_equal(result.parallelism, window.parallelism)
        for mine, theirs in [
            (result.in_per_s, window.in_per_s),
            (result.true_in_per_s, window.true_in_per_s),
            (result.busy, window.busy),
            (result.backpressured, window.backpressured),
            (result.idle, window.idle),
            (result.backlog, window.backlog),
            (result.latency_ms, window.latency_ms),
        ]:
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-3, equal_nan=True)


def test_a_failure_is_recovered_from_as_in_the_simulator() -> None:
    """Both are down for as long, replay as much and catch up at the same time, within a step of arrivals."""
    at_step, rate, step_s, windows = 200, 200.0, 10.0, 12
    spec = replace(LINE, checkpoint_interval_s=60.0)
    failing = replace(
        QUIET, failure_at_s=(at_step * step_s,), failure_downtime_s=100.0, checkpoint_duration_s=0.4, failures_per_day=1
    )
    ours = engine(spec, np.full((30 * windows, 1), rate), [[1, 4, 1]], failing)
    bed = Testbed([spec], np.array([[1, 4, 1]]), step_s=step_s)
    mine, theirs, lag_record_s = [ours.advance() for _ in range(windows)], [], 0.0
    for step in range(30 * windows):
        if step == at_step:
            bed.fail(0, downtime_s=100.0)
        before = float(bed.state.backlog[0, 0])
        theirs.append(bed.run(np.array([[rate, 0.0, 0.0]]), step_s))
        lag_record_s += 0.5 * step_s * (before + float(bed.state.backlog[0, 0]))
    backlogs = [one.backlog[0, 0] for one in theirs[29::30]]
    assert max(backlogs) > rate * 50 > backlogs[-1] == 0.0
    np.testing.assert_allclose([one.backlog[0, 0] for one in mine], backlogs, atol=rate * step_s)
    assert sum(one.lag_record_s[0] for one in mine) == pytest.approx(lag_record_s, rel=0.05)
    rates = [np.mean([one.in_per_s[0, 0] for one in theirs[n : n + 30]]) for n in range(0, len(theirs), 30)]
    np.testing.assert_allclose([one.in_per_s[0, 0] for one in mine], rates, atol=rate * step_s / 300)


def test_a_rescale_waits_for_slots_and_a_checkpoint_and_reads_again() -> None:
    """Checkpoints are completed at 80, 140, ... 620 s: the first after the slots' coming begins the stop."""
    flink = replace(QUIET, waits_for_checkpoint=True, slots_wait_s=600.0, checkpoint_duration_s=20.0)
    ours = engine(LINE, np.full((30 * 6, 1), 200.0), [[1, 2, 1]], flink)
    ours.rescale(0, np.array([1, 4, 1]))
    seen = [ours.advance() for _ in range(3)]
    assert [int(one.parallelism[0, 1]) for one in seen] == [2, 2, 4]
    assert [float(one.paid[0]) for one in seen] == [4.0, 4.0, 4.0]  # from the request on
    assert [(one.kind, one.at_s, one.downtime_s) for one in ours.downtimes[0]] == [("rescale", 620.0, 40.0)]
    # Until it stops the job is at its limit; then what came in 20 s of checkpoint and 40 s of stop is worked off.
    assert seen[2].lag_record_s[0] > 0.5 * 200.0 * 60.0**2
    ours.rescale(0, np.array([1, 3, 1]))  # a fall waits for the checkpoint of 920 s alone, and is paid until then
    assert ours.advance().paid[0] == pytest.approx(3.0 + 20.0 / 300.0)
    assert ours.downtimes[0][1].at_s == 920.0


def test_a_job_that_fails_while_it_waits_comes_back_with_what_is_there() -> None:
    flink = replace(
        QUIET,
        waits_for_checkpoint=True,
        slots_wait_s=90.0,
        failures_per_day=1,
        failure_at_s=(70.0,),
        failure_downtime_s=60.0,
    )
    ours = engine(LINE, np.full((30, 1), 200.0), [[1, 2, 1]], flink)
    ours.rescale(0, np.array([1, 4, 1]))
    assert int(ours.advance().parallelism[0, 1]) == 4
    assert [(one.kind, one.at_s, one.downtime_s) for one in ours.downtimes[0]] == [("restart", 70.0, 60.0)]


def test_a_rise_within_the_taskmanagers_of_a_job_waits_for_no_slots() -> None:
    flink = replace(QUIET, slots_wait_s=600.0, taskmanager_slots=4)
    ours = engine(LINE, np.full((60, 1), 100.0), [[1, 2, 1]], flink)
    ours.rescale(0, np.array([1, 4, 1]))
    assert [one.at_s for one in ours.downtimes[0]] == [0.0]
    assert ours.advance().paid[0] == 4.0
    ours.rescale(0, np.array([1, 5, 1]))
    assert ours.is_waiting(0)
    assert ours.advance().paid[0] == 8.0


def test_rows_of_one_job_are_allocated_as_jobs_of_a_fleet() -> None:
    fleet = pack([PAIR])
    draws = np.random.default_rng(1)
    want, capacity = draws.uniform(0, 300, (200, 2)), draws.uniform(1, 300, (200, 4))
    wide = np.zeros((200, 4))
    wide[:, :2] = want
    one_job = QueueingNetwork.from_gain(fleet.network.gain[0][:, :2], fleet.network.above[0])
    expected = fleet.network.allocate(wide, capacity)[:, :2]
    np.testing.assert_allclose(one_job.allocate(want, capacity), expected, rtol=1e-9)
    up = draws.uniform(0, 1, (200, 1))
    expected = fleet.network.allocate(wide, capacity * up)[:, :2]
    np.testing.assert_allclose(one_job.allocator(capacity)(want, up), expected, rtol=1e-9)


def test_one_source_emits_what_its_slowest_operator_lets_through() -> None:
    fleet = pack([LINE])
    draws = np.random.default_rng(1)
    want, capacity = draws.uniform(0, 300, (200, 1)), draws.uniform(0, 300, (200, 3))
    up = draws.uniform(0, 1, (200, 1))
    one_job = QueueingNetwork.from_gain(fleet.network.gain[0][:, :1], fleet.network.above[0])
    expected = one_job.allocate(want, capacity * up)
    assert (expected < want).any()
    np.testing.assert_allclose(one_job.allocator(capacity)(want, up), expected, rtol=1e-9)


def test_a_failure_replays_from_the_last_checkpoint_and_is_late_until_caught_up() -> None:
    disturbances = Disturbances(
        failures_per_day=1, measurement_noise=0.0, capacity_noise=0.0, failure_downtime_s=100.0, failure_downtime_sd=0.0
    )
    rates = np.full((30 * 288, 1), 200.0)
    one = engine(LINE, rates, [[1, 4, 1]], disturbances)
    at = float(one.setting.draws[0].failure_at_s[0])
    result = [one.advance() for _ in range(288)]
    (downtime,) = one.downtimes[0]
    assert downtime.at_s == at
    assert downtime.kind == "restart"
    # A checkpoint every 60 s, complete after 5 s.
    assert 5.0 <= downtime.checkpoint_age_s < 65.0
    catch_up_s = 200.0 * (100.0 + downtime.checkpoint_age_s) / (400.0 - 200.0)
    lag = sum(float(one_window.lag_record_s[0]) for one_window in result)
    # The backlog jumps by the replay, rises for the downtime and falls again.
    replay, top = 200.0 * downtime.checkpoint_age_s, 200.0 * (downtime.checkpoint_age_s + 100.0)
    assert lag == pytest.approx(0.5 * (replay + top) * 100.0 + 0.5 * top * catch_up_s, rel=0.08)
    # The oldest record is over 60 s old from 60 s - age into the downtime until 60 s of backlog are left.
    late_s = sum(float(one_window.late_s[0]) for one_window in result)
    since = max(0.0, 60.0 - downtime.checkpoint_age_s)
    until = 100.0 + catch_up_s * (1.0 - 60.0 / (100.0 + downtime.checkpoint_age_s))
    assert late_s == pytest.approx(until - since, abs=25.0)
    assert one.rows.backlog[0, 0] == 0.0


def test_a_rescale_of_less_than_the_target_is_not_late_and_loses_nothing() -> None:
    one = engine(LINE, np.full((90, 1), 200.0), [[1, 4, 1]])
    one.rescale(0, np.array([1, 5, 1]))
    assert not one.is_up[0]
    assert np.isnan(one.downtimes[0][0].checkpoint_age_s)  # which checkpoint it goes on from is not said
    result = [one.advance() for _ in range(3)]
    assert one.is_up[0]
    assert [bool(window.disturbed[0]) for window in result] == [True, False, False]
    assert sum(float(window.late_s[0]) for window in result) == 0.0
    assert result[0].in_per_s[0, 0] == pytest.approx(200.0, rel=1e-9)  # it caught up within the window


def test_a_job_that_restarts_comes_back_with_what_was_asked_for_meanwhile() -> None:
    disturbances = Disturbances(
        failures_per_day=1,
        capacity_noise=0.0,
        failure_downtime_s=400.0,
        failure_downtime_sd=0.0,
        failure_noticed_s=50.0,
    )
    one = engine(LINE, np.full((30 * 288, 1), 200.0), [[1, 4, 1]], disturbances)
    at = float(one.setting.draws[0].failure_at_s[0])
    while one.now_s < at + 50.0:
        assert not one.is_restarting(0)
        one.advance()
    assert one.is_restarting(0)  # the first tick after it was noticed
    asked_at = one.now_s
    one.rescale(0, np.array([1, 8, 1]))
    (downtime,) = one.downtimes[0]
    again_at = max(at + 400.0, asked_at + float(one.setting.draws[0].rescale_downtime_s[one.window]))
    assert (downtime.kind, downtime.at_s + downtime.downtime_s) == ("restart", pytest.approx(again_at))
    assert one.rows.down_until[0] == pytest.approx(again_at)
    window = one.advance()
    assert window.parallelism[0].tolist() == [1, 8, 1]
    one.advance()
    assert one.is_up[0]
    assert not one.is_restarting(0)


def test_a_job_that_is_rescaled_does_not_restart_after_a_failure() -> None:
    one = engine(LINE, np.full((90, 1), 200.0), [[1, 4, 1]])
    one.rescale(0, np.array([1, 5, 1]))
    assert not one.is_restarting(0)


def test_overload_is_late_once_the_oldest_record_is_old_enough() -> None:
    one = engine(LINE, np.full((60, 1), 400.0), [[1, 2, 1]])
    result = [one.advance() for _ in range(2)]
    # The backlog grows by half of what comes: after t seconds the oldest record is t / 2 old, over 60 s from 120 s on.
    assert float(result[0].late_s[0]) == pytest.approx(180.0, abs=10.0)
    assert float(result[1].late_s[0]) == 300.0
    assert result[0].busy[0, 1] == pytest.approx(1.0)
    assert result[0].backpressured[0, 0] > 0.0


def test_random_draws_depend_on_seed_and_window_only() -> None:
    drawn = [RandomDraws.from_seed(seed, 600, 3, DecisionSchedule(), Disturbances()) for seed in (1, 1, 2)]
    assert np.array_equal(drawn[0].failure_at_s, drawn[1].failure_at_s)
    assert np.array_equal(drawn[0].measured, drawn[1].measured)
    assert not np.array_equal(drawn[0].failure_at_s, drawn[2].failure_at_s)
    assert len(drawn[0].failure_at_s) in {2, 3}
    assert ((drawn[0].rescale_downtime_s >= 22) & (drawn[0].rescale_downtime_s <= 40)).all()
    assert RandomDraws.from_seed(1, 6000, 1, DecisionSchedule(), Disturbances()).capacity.std() == pytest.approx(
        0.02, rel=0.2
    )


def test_a_cadence_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConditionsError, match="tick"):
        DecisionSchedule(tick_s=400)
    with pytest.raises(ConditionsError):
        DecisionSchedule(plan_every_s=7200 + 300)


def test_sufficient_parallelism_is_the_least() -> None:
    assert find_sufficient(LINE, np.array([300.0]), 0.75).tolist() == [1, 4, 1]
    assert find_sufficient(LINE, np.array([[299.0], [301.0]]), 0.75)[:, 1].tolist() == [4, 5]
