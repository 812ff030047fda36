"""A job that falls behind between two evaluations: it is noticed, evaluated at once, and its rise waits for nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from programme_line import RUNNING, START_S, noisy, run, snapshot, window
from replayed_line import MONDAY, workload

from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions, DecisionSchedule, Disturbances
from lab.replay.hosted_driver import HostedDriver
from lab.replay.random_draws import RandomDraws
from lab.replay.replay_run import ReplayResult, ReplayRun
from lab.replay.workload import Workload
from models.control.case import Case, Verb
from models.control.checks import check_pace
from models.control.limits import Limits, Mode
from models.control.reasons import Reason
from models.control.state import Intention, JobHistory, ObservedJob, Origin
from models.hosting.host import HostedPolicy, answers_alarms, evaluate_hosted
from models.policies.job_snapshot import Snapshot
from models.policies.registry import policy
from models.policies.tidewise.falling_behind import falls_behind
from models.programme.capacity_belief import BacklogChange, CapacityBelief, measure_capacity_error


def look(waiting_s: list[float], load: float = 9600.0, **changed: Any) -> Snapshot:
    """Return a job by its last minutes, at whose ends so many seconds of its load wait."""
    rows = [window(0, load, RUNNING, lag_s, **changed) for lag_s in waiting_s]
    for minute, row in enumerate(rows):
        row["window_start_s"] = row["window_start_s"] + 60 * minute
    job = snapshot(rows, RUNNING)
    now_s = int(job.observations.window_start_s[-1]) + 60
    return replace(job, now_s=now_s, observations=replace(job.observations, window_s=60))


@pytest.mark.parametrize(
    ("waiting_s", "behind"),
    [
        ([0.0, 0.0], False),
        ([0.0, 9.0], False),  # 54 s by the next evaluation, and 60 s are late
        ([0.0, 11.0], True),
        ([50.0, 51.0], False),
        ([50.0, 53.0], True),
        ([90.0, 89.0], False),  # works its backlog off
        ([25.0], False),  # nothing to hold it against yet
    ],
)
def test_a_job_is_behind_by_what_waits_and_by_how_that_grows(waiting_s: list[float], behind: bool) -> None:
    assert falls_behind(look(waiting_s)) == behind


def test_what_came_during_a_stop_tells_nothing() -> None:
    assert not falls_behind(look([0.0, 45.0], disturbed=True))


def test_a_source_without_a_backlog_is_behind_by_its_backpressure() -> None:
    unseen = np.full(3, math.nan)
    hidden: dict[str, Any] = {"target_data_rate_per_s": unseen, "pending_records": unseen, "latency_ms": unseen}
    assert not falls_behind(look([0.0, 0.0], **hidden))
    assert falls_behind(look([0.0, 0.0], **hidden, backpressured_share=np.array([0.5, 0.0, 0.0])))


def test_only_a_policy_that_decides_anew_answers() -> None:
    behind = look([20.0, 40.0])
    hosted = {name: HostedPolicy.of(name) for name in ("programme", "planner", "controller_alone", "need_vector")}
    assert {name: answers_alarms(one, behind) for name, one in hosted.items()} == {
        "programme": True,
        "planner": True,
        "controller_alone": True,
        "need_vector": False,
    }
    assert not answers_alarms(hosted["programme"], replace(behind, up=False))


@pytest.mark.parametrize("late_weight", [0.4, 0.01])
def test_a_burst_is_answered_by_a_size_that_carries_its_last_minutes(late_weight: float) -> None:
    _, memory = run(noisy(7000.0))
    now_s = START_S + 300 * 30 + 120
    burst = look([0.0, 25.0], load=14_000.0, processing_rate_per_s=np.full(3, 8000.0))
    shifted = replace(burst.observations, window_start_s=np.array([now_s - 120, now_s - 60]))
    options = burst.options.with_values({"costs.late_weight": late_weight})
    seen = replace(burst, now_s=now_s, observations=shifted, options=options)
    hosted = HostedPolicy.of("programme", policy("programme"))
    decision, _ = evaluate_hosted(hosted, memory, now_s, seen, None)
    assert decision.wanted is not None
    assert decision.wanted["map"] >= 15
    assert decision.falls_behind


def test_a_minute_tells_less_of_a_capacity_than_five() -> None:
    def changes(window_s: float) -> list[BacklogChange]:
        count = round(300 / window_s)
        begins = [1e6 + 100.0 * window_s * number for number in range(count)]
        return [BacklogChange(at, at + 100.0 * window_s, window_s, 1000.0, n + 1.0) for n, at in enumerate(begins)]

    whole, parts = (measure_capacity_error(CapacityBelief(), changes(one), 1000.0, 0.05) for one in (300.0, 60.0))
    assert parts.error == pytest.approx(whole.error, rel=0.02)
    assert parts.share == pytest.approx(whole.share, rel=0.02)


@pytest.mark.parametrize(
    ("target", "behind", "waits"), [(9, True, False), (9, False, True), (7, True, True)], ids=["rise", "calm", "fall"]
)
def test_the_cooldown_holds_back_no_rise_of_a_job_that_falls_behind(target: int, behind: bool, waits: bool) -> None:
    wanted = Intention({"a": target}, Origin.REACTIVE, "step", "load rises", 2000.0, falls_behind=behind)
    observed = ObservedJob("1", "RUNNING", {"a": 8}, {"a": 8}, max_parallelism={"a": 64})
    case = Case(1000.0, wanted, observed, JobHistory(last_change_at_s=900.0), Limits(mode=Mode.AUTO))
    action = check_pace(case)
    assert (action is not None and (action.verb, action.reason) == (Verb.WAIT, Reason.COOLDOWN)) == waits


BURST_S = 3600 * 3 + 360


def replay(name: str, cadence: DecisionSchedule) -> ReplayResult:
    given = workload(0.15, MONDAY)
    rates = given.rates_per_s.copy()
    rates[:] = rates.mean()
    rates[BURST_S // given.step_s :] *= 1.7
    load = Workload(given.spec, given.start_s, given.step_s, rates)
    quiet = Disturbances(failures_per_day=0, capacity_noise=0.0, measurement_noise=0.0)
    driver = HostedDriver.of(name, policy(name))
    return ReplayRun(load, [CandidatePolicy(name, driver)], [0], Conditions(cadence, disturbances=quiet)).run()


def test_a_replay_looks_at_each_poll_at_a_policy_that_decides_anew() -> None:
    """A burst a minute after a tick: its rise goes out before the next one, and the job is late for less time."""
    by_tick, by_poll = (replay("programme", DecisionSchedule(poll_s=poll_s)) for poll_s in (300, 60))
    late_s = {poll_s: float(one.ledger.late_s.sum()) for poll_s, one in ((300, by_tick), (60, by_poll))}
    assert late_s[60] < 0.7 * late_s[300]
    window = BURST_S // 300
    assert by_poll.ledger.rescales[window].sum() == 1
    assert by_tick.ledger.rescales[window].sum() == 0


def test_draws_of_parts_are_those_of_their_window() -> None:
    cadence, disturbances = DecisionSchedule(), Disturbances()
    draws = RandomDraws.from_seed(3, 4, 2, cadence, disturbances)
    parts = draws.repeat(cadence.looks)
    np.testing.assert_array_equal(parts.capacity[::5], draws.capacity)
    np.testing.assert_array_equal(parts.measured[4::5], draws.measured)
    assert len(parts.rescale_downtime_s) == 20
