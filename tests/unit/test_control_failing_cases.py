"""Which failures are a rescale's, what is gone back to, and what of it fits, in single cases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.case import Case, Verb
from models.control.failing_rescale import FAILS, find_failure, form_block
from models.control.limits import Limits
from models.control.partial_rise import fit_back
from models.control.readiness import Failure
from models.control.reasons import Reason
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request

SIX = {"a": 6, "b": 6}
SENT = Request("step-1", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120, failures_before=())
FALL = replace(SENT, target=TWO, before=FOUR, running_before=FOUR)
AUTO = Limits(mode=Mode.AUTO)
BROKEN = (Failure(NOW_S - 30, "it broke", "broken"), Failure(NOW_S - 10, "it broke again", "broken"))


def failing(
    request: Request = SENT, failures: tuple[Failure, ...] = BROKEN, limits: Limits = AUTO, **observed: object
) -> Case:
    """Return the case of a job that restarts again and again, and is asked for what the request wants."""
    job = ObservedJob("j", "RESTARTING", {}, request.target, free_slots=8, failures=failures)
    history = JobHistory(job_id="j", known_requested=request.before, in_flight=request)
    return plain_case(observed=replace(job, **observed), history=history, limits=limits)  # type: ignore[arg-type]


def gone_back_to(case: Case) -> dict[str, int] | None:
    action = reconcile(case)
    if action.reason != FAILS:
        return None
    assert action.verb is Verb.ROLL_BACK
    assert action.request is not None
    return dict(action.request.target)


def test_what_fails_is_the_request_in_flight_or_the_one_that_is_not_judged_yet() -> None:
    case = failing()
    assert gone_back_to(case) == TWO
    confirmed = replace(case.history, known_requested=FOUR, in_flight=None, to_judge=SENT)
    assert gone_back_to(replace(case, history=confirmed)) == TWO
    assert gone_back_to(replace(case, history=replace(confirmed, to_judge=None))) is None


def test_what_somebody_else_asks_for_does_not_fail_by_our_request() -> None:
    assert reconcile(failing(requested=SIX)).reason == "foreign_change"


def test_a_request_that_takes_another_back_is_not_taken_back() -> None:
    assert gone_back_to(failing(replace(SENT, is_rollback=True))) is None


def test_a_job_that_has_failed_once_may_go_on() -> None:
    assert gone_back_to(failing(failures=BROKEN[:1])) is None


@pytest.mark.parametrize(
    ("after_s", "is_taken_back"), [((0, 1, 20, 50, 290), False), ((0, 300), True), ((0, 60, 120, 180, 240, 300), True)]
)
def test_a_task_manager_that_is_lost_is_one_failure_until_another_is_there(
    after_s: tuple[float, ...], is_taken_back: bool
) -> None:
    """Flink deploys to it until its heartbeat times out; one that is lost again and again is the request's fault."""
    lost = tuple(Failure(NOW_S - 400 + one, "it is unreachable", "unreachable", lacks_slots=True) for one in after_s)
    case = failing(replace(SENT, sent_at_s=NOW_S - 500), lost)
    assert (gone_back_to(case) == TWO) is is_taken_back
    of_the_job = tuple(replace(one, lacks_slots=False) for one in lost)
    assert gone_back_to(failing(replace(SENT, sent_at_s=NOW_S - 500), of_the_job)) == TWO


def test_failures_that_the_job_had_before_are_not_the_request_s() -> None:
    """Flink may have forgotten those of before when it tells the later ones."""
    assert gone_back_to(failing(replace(SENT, failures_before=("broken",)))) is None
    assert gone_back_to(failing(replace(SENT, failures_before=("another",)))) == TWO


@pytest.mark.parametrize(
    ("failures_before", "failed_until_s", "is_of_the_request"),
    [
        (None, None, True),
        (None, NOW_S - 5, False),
        ((), NOW_S - 3600, True),
    ],
    ids=["since it was sent", "Flink's clock was ahead", "since the last of before"],
)
def test_failures_count_since_the_last_before_the_request(
    failures_before: tuple[str, ...] | None, failed_until_s: float | None, is_of_the_request: bool
) -> None:
    request = replace(SENT, failures_before=failures_before, failed_until_s=failed_until_s)
    assert (find_failure(failing(request)) is not None) is is_of_the_request


def test_of_a_job_without_failures_before_all_count_and_of_an_unknown_one_those_since_the_request() -> None:
    """Flink's clock may be an hour behind."""
    behind = tuple(replace(one, at_s=one.at_s - 3600) for one in BROKEN)
    assert find_failure(failing(failures=behind)) is not None
    assert find_failure(failing(replace(SENT, failures_before=None), behind)) is None


def test_one_goes_back_as_far_as_slots_are_free_and_all_the_way_where_nobody_knows() -> None:
    assert gone_back_to(failing(FALL, free_slots=8)) == FOUR
    assert gone_back_to(failing(FALL, free_slots=1)) == {"a": 3, "b": 3}
    assert gone_back_to(failing(FALL, free_slots=0)) is None
    assert gone_back_to(failing(FALL, free_slots=None)) == FOUR
    assert gone_back_to(failing(FALL, free_slots=0, is_elastic=True)) == FOUR


@pytest.mark.parametrize(("used", "back"), [(2, FOUR), (7, {"a": 3, "b": 3}), (8, TWO), (None, TWO)])
def test_one_goes_back_within_the_budget_of_the_cluster(used: int | None, back: dict[str, int]) -> None:
    case = failing(FALL, limits=replace(AUTO, cluster_slots_max=8), cluster_slots_used=used)
    assert fit_back(FOUR, case) == back


@pytest.mark.parametrize("free", [8, None])
def test_going_back_keeps_bounds_that_a_person_has_set_since(free: int | None) -> None:
    """Flink refuses an upper bound below the lower one, and the job would go on failing."""
    assert gone_back_to(failing(free_slots=free, lower_bounds={"a": 3, "b": 1})) == {"a": 3, "b": 2}
    alone = replace(AUTO, left_alone=("a",))
    assert gone_back_to(failing(free_slots=free, limits=alone)) == {"a": 4, "b": 2}


def test_a_target_under_which_the_job_failed_is_blocked_until_a_person_lifts_it() -> None:
    case = failing()
    back = reconcile(case).request
    assert back is not None
    block = form_block(case, back, FAILS)
    assert (block.until_s, block.because, block.failure) == (math.inf, "the job failed: it broke again", "broken")
    other = form_block(case, back, Reason.NOT_FILLED)
    assert (other.until_s, other.because) == (NOW_S + AUTO.block_s, "")
    assert form_block(case, back, Reason.SAVEPOINT_IN_PROGRESS).until_s == NOW_S


def rise_of(target: dict[str, int], **observed: object) -> dict[str, int]:
    """Return what is asked for of a rise that the reactive controller wants."""
    desired = Intention(target, Origin.REACTIVE, "step-1", "load rises", NOW_S + 600)
    job = replace(ObservedJob("j", "RUNNING", TWO, TWO), **observed)  # type: ignore[arg-type]
    history = JobHistory(job_id="j", known_requested=job.requested)
    action = reconcile(plain_case(desired=desired, observed=job, history=history))
    assert action.request is not None
    return dict(action.request.target)


def test_a_cluster_that_adds_task_managers_gets_the_whole_rise() -> None:
    assert rise_of(SIX, free_slots=1) == {"a": 3, "b": 3}
    assert rise_of(SIX, free_slots=1, is_elastic=True) == SIX


def test_the_part_of_a_rise_takes_nothing_from_a_vertex_of_a_job_that_restarts() -> None:
    """One slot beside its own is free; what it does not run now is its own nevertheless."""
    asked, groups = {"a": 1, "b": 3}, {"a": "left", "b": "right"}
    restarts = {"state": "RESTARTING", "running": {}, "requested": asked, "slot_sharing_group": groups}
    assert rise_of(SIX, **restarts, free_slots=5) == {"a": 2, "b": 3}
