"""A rescale is judged by the windows before and after it, and its outcome is kept once, with what the plan promised."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from control_entries import FOUR, NOW_S, TWO, entry_for, plain_case

from controller.leases.lease import Lease
from controller.log.control_log import LogEntry
from controller.log.delta_log import DeltaControlLog, open_control_log
from controller.outcomes.judge_rescales import RescaleEvaluator
from controller.outcomes.measure_outcome import find_lateness_s, measure_outcome
from controller.view.job_view import JobView
from controller.view.plan_rows import JobPlan
from include.domain.graph import JobGraph, Operator
from include.tables.plan_row import PlanRow
from models.control.case import OutcomeCheck
from models.control.readiness import Failure
from models.control.state import Intention, JobHistory, ObservedJob, Origin
from models.policies.observations import MEASURES, Observations
from models.polling.seen_job import PolledJob

SENT_S, CONFIRMED_S, LATER_S = NOW_S - 1200, NOW_S - 900, NOW_S
GRAPH = JobGraph.from_operators([Operator("a", (), 128), Operator("b", ("a",), 128)])
RUNS_AT_FOUR = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)


def seen(graph: JobGraph | None = GRAPH, restarts: float = 0.0, rescales: float = 0.0) -> PolledJob:
    return PolledJob(
        cluster="live",
        job="orders",
        job_id="j",
        state="RUNNING",
        polled_at_ms=round(1000 * NOW_S),
        running=TWO,
        restarting=False,
        vertex_ids={"a": "a", "b": "b"},
        finished=frozenset(),
        graph=graph,
        stops=(),
        metrics={"numRestarts": restarts, "numRescales": rescales},
    )


def plan(*step_ids: str) -> JobPlan:
    steps = tuple(
        PlanRow(
            step_id=one,
            expected_recovery_s=90.0,
            expected_capacity_per_s=2000.0,
            expected_load_q50_per_s=800.0,
            expected_load_q90_per_s=1000.0,
        )
        for one in step_ids
    )
    return JobPlan(
        as_of_s=SENT_S - 600,
        steps=steps,
        forecast_version="f",
        observations_until_s=SENT_S - 600,
    )


def windows(
    *ends_s: float, rates: Any = 100.0, arriving: Any = 100.0, held: Any = 0.1, lag_s: Any = 0.0, disturbed: Any = False
) -> Observations:
    """Return minutes of a job whose source takes in ``rates``; NaN of everything else."""
    count = len(ends_s)
    measures = {name: np.full((count, 2), np.nan) for name in MEASURES}
    for name, values in {
        "processing_rate_per_s": rates,
        "target_data_rate_per_s": arriving,
        "backpressured_share": held,
        "latency_ms": 1000 * np.asarray(lag_s, float),
    }.items():
        measures[name][:, 0] = values
    return Observations(
        window_start_s=np.array(ends_s, np.int64) - 60,
        window_s=60,
        parallelism=np.full((count, 2), 2),
        disturbed=np.broadcast_to(disturbed, count),
        **measures,
    )


def view(observations: Observations | None, **known: Any) -> JobView:
    return JobView("live", "orders", **{"seen": seen(), "observations": observations} | known)


BEFORE = windows(SENT_S - 120, SENT_S - 60, SENT_S - 1)
AFTER = windows(LATER_S - 120, LATER_S - 60, LATER_S)
SLOW = windows(LATER_S - 120, LATER_S - 60, LATER_S, rates=50.0, held=0.9, lag_s=600.0)


@pytest.fixture
def log(tmp_path) -> DeltaControlLog:
    lease = Lease(str(tmp_path), "live", "one", lambda: NOW_S)
    assert lease.take()
    return DeltaControlLog(open_control_log(str(tmp_path)), "live", lease, lambda: NOW_S)


@pytest.fixture(autouse=True)
def no_failure_is_logged(caplog):
    yield
    assert [one for one in caplog.records if one.levelno >= logging.ERROR and one.exc_info] == []


def wish(step_id: str = "step-1") -> Intention:
    return Intention(FOUR, Origin.PLAN, step_id, "load rises", NOW_S + 600, settle_s=60.0)


def sent(step_id: str = "step-1") -> LogEntry:
    return entry_for(plain_case(SENT_S, desired=wish(step_id)))


def confirmed(step_id: str = "step-1") -> LogEntry:
    case = plain_case(CONFIRMED_S, desired=wish(step_id), observed=RUNS_AT_FOUR, history=sent(step_id).history)
    result = entry_for(case)
    assert result.history.to_judge is not None
    return result


def judged(check: OutcomeCheck, step_id: str = "step-1") -> LogEntry:
    history = confirmed(step_id).history
    return entry_for(plain_case(LATER_S, desired=wish(step_id), observed=RUNS_AT_FOUR, history=history, outcome=check))


def test_a_rescale_is_judged_once_it_is_confirmed_and_its_outcome_kept_once(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    assert judge.judge("orders", view(BEFORE)) == OutcomeCheck()
    log.append(confirmed())
    check = judge.judge("orders", view(SLOW))
    assert check.is_worse is True
    assert "records wait for 600 s (0 s before) at 50/s (100/s before)" in check.detail
    assert judge.judge("orders", view(AFTER)).is_worse is False
    log.append(judged(check))
    plain = view(SLOW, plan=plan("step-0", "step-1"))
    judge.note_outcome("orders", plain)
    judge.note_outcome("orders", plain)
    (outcome,) = judge.outcomes
    assert outcome.entry == log.read_last("live/orders")
    assert outcome.before is not None
    assert outcome.after is not None
    assert (outcome.before.throughput_per_s, outcome.after.throughput_per_s) == (100.0, 50.0)
    assert outcome.promised is not None
    assert (outcome.promised.step_id, outcome.origin) == ("step-1", Origin.PLAN)


@pytest.mark.parametrize(("step_id", "origin"), [("step-1", Origin.REACTIVE), (Origin.PIN, Origin.PIN)])
def test_what_no_plan_promised_has_its_own_origin(log, step_id: str, origin: Origin) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent(step_id))
    judge.judge("orders", view(BEFORE))
    log.append_all([confirmed(step_id), judged(OutcomeCheck(False, "fine"), step_id)])
    judge.note_outcome("orders", view(AFTER))
    assert [(one.promised, one.origin) for one in judge.outcomes] == [(None, origin)]


def test_without_measurements_before_or_after_nothing_is_judged_or_kept(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append_all([sent(), confirmed()])
    assert judge.judge("orders", view(None)) == OutcomeCheck()
    known = judge.judge("orders", view(AFTER))
    assert replace(known, caught_up_at_s=None) == OutcomeCheck()  # nothing is known of before
    assert known.caught_up_at_s == LATER_S
    log.append(judged(OutcomeCheck(False, "fine")))
    judge.note_outcome("orders", view(AFTER))
    judge.judge("orders", view(BEFORE))
    judge.note_outcome("orders", view(BEFORE))  # and now nothing of after
    judge.note_outcome("orders", view(None))
    judge.note_outcome("orders", view(AFTER, seen=None))
    assert judge.judge("orders", view(AFTER, seen=None)) == OutcomeCheck()
    assert judge.outcomes == []


def test_measurements_of_a_job_that_has_gone_are_forgotten_and_those_of_others_kept(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append(confirmed())
    judge.forget({"orders"})
    assert judge.judge("orders", view(SLOW)).is_worse is True
    judge.forget({"rides"})
    assert judge.judge("orders", view(SLOW)).is_worse is None


def test_measurements_before_one_step_are_not_those_of_another(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append_all([sent("step-2"), confirmed("step-2"), judged(OutcomeCheck(False, "fine"), "step-2")])
    judge.note_outcome("orders", view(AFTER))
    assert judge.outcomes == []


def test_a_pin_that_is_set_again_is_measured_anew(log) -> None:
    """Both requests have the pin's name for a step."""
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent(Origin.PIN))
    judge.judge("orders", view(BEFORE))
    log.append(replace(sent(Origin.PIN), history=JobHistory("j", known_requested=TWO)))
    assert judge.judge("orders", view(BEFORE)) == OutcomeCheck()
    log.append_all([sent(Origin.PIN), confirmed(Origin.PIN), judged(OutcomeCheck(False, "fine"), Origin.PIN)])
    judge.note_outcome("orders", view(AFTER))
    assert judge.outcomes == []


def test_a_job_that_fails_is_kept_without_measurements_after(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    failures = tuple(Failure(SENT_S + at_s, "java.lang.IllegalStateException: x", "x") for at_s in (20, 40))
    observed = ObservedJob("j", "RESTARTING", {}, FOUR, free_slots=8, failures=failures)
    log.append(entry_for(plain_case(SENT_S + 60, desired=wish(), observed=observed, history=sent().history)))
    judge.note_outcome("orders", view(BEFORE))
    assert [(one.before is None, one.after) for one in judge.outcomes] == [(False, None)]


def test_only_windows_after_the_confirmation_count_as_after(log) -> None:
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(BEFORE))
    log.append_all([confirmed(), judged(OutcomeCheck(False, "fine"))])
    mixed = windows(CONFIRMED_S, CONFIRMED_S + 60, CONFIRMED_S + 120, rates=[900.0, 100.0, 200.0])
    judge.note_outcome("orders", view(mixed))
    (outcome,) = judge.outcomes
    assert outcome.after is not None
    assert outcome.after.throughput_per_s == 150.0


def test_a_request_whose_job_was_not_measured_before_it_uses_what_comes_next_and_keeps_it(log) -> None:
    """Windows are forgotten before a slow rescale is judged: the first measurement stays."""
    judge = RescaleEvaluator("live", log, 60.0)
    log.append(sent())
    judge.judge("orders", view(windows(SENT_S - 60, rates=100.0)))
    log.append(confirmed())
    less = windows(LATER_S - 120, LATER_S - 60, LATER_S, rates=50.0, arriving=100.0, lag_s=600.0)
    assert judge.judge("orders", view(less)).is_worse is True


def test_the_last_three_undisturbed_windows_in_between_are_measured() -> None:
    ends = [NOW_S + 60 * place for place in range(7)]
    observations = windows(
        *ends,
        rates=[1.0, 100.0, 200.0, 999.0, 300.0, 7.0, 8.0],
        arriving=[1.0, 100.0, np.nan, 999.0, 300.0, 7.0, 8.0],
        held=[0.9, 0.2, 0.4, 0.9, 0.6, 0.9, 0.9],
        lag_s=[9.0, 9.0, 9.0, 9.0, 2.0, 9.0, 9.0],
        disturbed=[False, False, False, True, False, False, False],
    )
    job = seen(restarts=5.0, rescales=2.0)
    result = measure_outcome(job, observations, until_s=ends[4], since_s=ends[0] - 60)
    assert result is not None
    assert (result.until_s, result.throughput_per_s, result.arriving_per_s) == (ends[4], 200.0, 200.0)
    assert (result.backpressured_share, result.lag_s, result.restarts) == (pytest.approx(0.4), 2.0, 3)
    for until_s, since_s in ((ends[0] - 1, 0.0), (ends[6], ends[6] - 59)):
        assert measure_outcome(job, observations, until_s, since_s) is None


def test_outstanding_records_and_busy_operators_are_measured() -> None:
    """Pending records fall while more and more lies in buffers: the sum of both grows."""
    plain = windows(*(NOW_S + 60 * place for place in range(3)))
    plain.pending_records[:, 0] = [900.0, 800.0, 700.0]
    plain.busy_share[:] = [[0.4, 0.5], [0.6, 0.9], [0.9, 0.6]]
    plain.true_processing_rate_per_s[:] = [[400.0, 100.0], [400.0, 110.0], [400.0, 120.0]]
    job = replace(seen(), vertex_ids={"a": "id of a", "b": "id of b"})
    result = measure_outcome(job, plain, math.inf)
    assert result is not None
    assert result.backlog_slope_per_s == pytest.approx(-100 / 60)
    assert result.capacity_per_s == {"id of b": 110.0}
    outstanding = np.array([[1000.0, np.nan], [1300.0, np.nan], [1600.0, np.nan]])
    grows = measure_outcome(job, replace(plain, outstanding_records=outstanding), math.inf)
    assert grows is not None
    assert grows.backlog_slope_per_s == pytest.approx(5.0)
    one = measure_outcome(job, plain.rows(np.array([2])), math.inf)
    assert one is not None
    assert math.isnan(one.backlog_slope_per_s)


def test_how_late_a_job_is_decides_its_turn() -> None:
    late = windows(NOW_S - 60, NOW_S, lag_s=[10.0, 90.0])
    assert find_lateness_s(view(late), NOW_S) == 90.0
    assert find_lateness_s(view(late, seen=replace(seen(), restarting=True)), NOW_S) == math.inf
    assert find_lateness_s(view(None, seen=None, has_failed=True), NOW_S) == math.inf
    assert find_lateness_s(view(None), NOW_S) is find_lateness_s(view(late, seen=None), NOW_S) is None


def test_nobody_knows_how_late_a_job_is_that_is_not_measured_any_more() -> None:
    late = windows(NOW_S - 60, NOW_S, lag_s=[10.0, 90.0])
    assert find_lateness_s(view(late), NOW_S + 230) == 90.0
    assert find_lateness_s(view(late), NOW_S + 250) is None
    assert find_lateness_s(view(windows(NOW_S, lag_s=np.nan)), NOW_S) is None


def test_what_was_never_measured_is_unknown() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = measure_outcome(seen(), windows(NOW_S, NOW_S + 60, arriving=np.nan, held=np.nan), math.inf)
    assert result is not None
    assert math.isnan(result.arriving_per_s)
    assert (result.throughput_per_s, result.backpressured_share) == (100.0, 0.0)
    assert measure_outcome(seen(), None, math.inf) is None
    assert measure_outcome(seen(), Observations.nothing(2), math.inf) is None
    assert measure_outcome(seen(graph=None), windows(NOW_S), math.inf) is None
