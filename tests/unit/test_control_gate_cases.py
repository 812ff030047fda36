"""What keeps a request back, in single cases that each hang on one part of a condition."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.case import Case, Verb, form_request
from models.control.limits import Limits
from models.control.readiness import Checkpoints, Readiness
from models.control.reconcile import reconcile
from models.control.state import Intention, Mode, ObservedJob, Origin

ONE = {"a": 1, "b": 1}
AUTO = Limits(mode=Mode.AUTO)
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
RECENT = Checkpoints(60.0, NOW_S, state_bytes=1)
READY = Readiness(RECENT)


def case_of(observed: ObservedJob = RUNS, limits: Limits = AUTO, origin: Origin = Origin.PLAN) -> Case:
    """Return the case of a job that is wanted at four."""
    desired = Intention(FOUR, origin, "step-1", "load rises", NOW_S + 600)
    return plain_case(desired=desired, observed=observed, limits=limits)


def test_nothing_is_sent_while_nobody_knows_of_another_autoscaler() -> None:
    action = reconcile(case_of(replace(RUNS, autoscaler_unknown="no reply")))
    assert (action.verb, action.reason) == (Verb.REFUSE, "autoscaler_unknown")
    assert "no reply" in action.detail


@pytest.mark.parametrize(
    ("ready", "reason"),
    [
        (replace(READY, other_autoscaler="another"), "other_autoscaler"),
        (replace(READY, autoscaler_unknown="no reply"), "autoscaler_unknown"),
        (READY, "plan"),
    ],
)
def test_an_autoscaler_that_has_come_since_is_noticed_right_before_the_request(ready: Readiness, reason: str) -> None:
    assert reconcile(case_of(replace(RUNS, readiness=ready))).reason == reason


@pytest.mark.parametrize(
    ("state", "reason"), [("RESTARTING", "reactive"), ("CREATED", "reactive"), ("FAILING", "not_running")]
)
def test_a_rise_goes_to_a_job_that_is_brought_back_and_to_no_other_that_is_down(state: str, reason: str) -> None:
    observed = replace(RUNS, state=state, running={})
    assert reconcile(case_of(observed, origin=Origin.REACTIVE)).reason == reason


@pytest.mark.parametrize(
    ("others", "words"), [(None, "nobody knows how many other jobs"), (3, "3 other jobs"), (1, "load rises")]
)
def test_how_many_other_jobs_are_rescaled_is_said(others: int | None, words: str) -> None:
    limits = replace(AUTO, concurrent_rescales=2)
    assert reconcile(case_of(replace(RUNS, cluster_rescales=others), limits)).detail.startswith(words)


def test_a_request_says_for_what_flink_may_wait() -> None:
    waits = replace(READY, wait_s=100.0, wait_detail="100 s for a checkpoint")
    detail = reconcile(case_of(replace(RUNS, readiness=waits))).detail
    assert detail == "load rises; it has 280 s, of which Flink may wait: 100 s for a checkpoint"
    assert reconcile(case_of(replace(RUNS, readiness=READY))).detail == "load rises"


@pytest.mark.parametrize(
    ("waits", "restarts", "forced_at_s"),
    [(True, True, NOW_S + 60), (False, True, None), (True, False, None)],
)
def test_flink_begins_by_force_only_with_what_waits_for_a_checkpoint_and_restarts_the_job(
    waits: bool, restarts: bool, forced_at_s: float | None
) -> None:
    ready = replace(READY, checkpoint_wait_s=60.0, waits_for_checkpoint=waits, restarts=restarts)
    request = form_request(case_of(replace(RUNS, readiness=ready)), "step-1", FOUR, 0.0)
    assert request.forced_at_s == forced_at_s


@pytest.mark.parametrize(("running", "since_s"), [(TWO, NOW_S - 500), ({}, None)])
def test_a_request_notes_since_when_the_job_runs_if_it_does(running: dict[str, int], since_s: float | None) -> None:
    observed = replace(RUNS, running=running, running_since_s=NOW_S - 500)
    assert form_request(case_of(observed), "step-1", FOUR, 0.0).running_since_s == since_s


@pytest.mark.parametrize(
    ("ready", "failed_until_s"),
    [
        (None, NOW_S + 1),
        (READY, NOW_S + 1),
        (replace(READY, now_s=NOW_S + 2), NOW_S + 2),
        (replace(READY, now_s=NOW_S + 2, failures=()), None),
    ],
)
def test_of_failures_that_nobody_knows_those_until_now_are_not_of_the_request(
    ready: Readiness | None, failed_until_s: float | None
) -> None:
    """Now is what Flink's clock says, asked right before the request or else with the job."""
    observed = replace(RUNS, told_at_s=NOW_S + 1, readiness=ready)
    assert form_request(case_of(observed), "step-1", FOUR, 0.0).failed_until_s == failed_until_s
