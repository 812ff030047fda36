"""A request in flight, one that was given up, and what somebody else asks for meanwhile, in single cases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.arrivals import has_arrived
from models.control.case import Action, Case, Verb
from models.control.history import advance_history, end_refused_request
from models.control.limits import Limits
from models.control.readiness import Checkpoints, Failure, Readiness
from models.control.reconcile import reconcile
from models.control.requests import is_waited_with
from models.control.state import JobHistory, LateRequest, Mode, ObservedJob, Request

SIX = {"a": 6, "b": 6}
SENT = Request("step-1", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120, failures_before=())
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
ASKED = replace(RUNS, requested=FOUR)
AUTO = Limits(mode=Mode.AUTO)
FAILS = (Failure(NOW_S - 30, "it broke", "broken"), Failure(NOW_S - 10, "it broke again", "broken"))
NOTHING_MAY_BE_SENT = [
    ({"in_blackout": True}, {}),
    ({"is_held": True}, {}),
    ({"mode": Mode.DRY_RUN}, {}),
    ({}, {"other_autoscaler": "another"}),
    ({}, {"autoscaler_unknown": "no reply"}),
    ({}, {"obstacle": "reactive_mode"}),
]


def follow(observed: ObservedJob, request: Request | None = SENT, **changed: object) -> Case:
    """Return the case of a job with a request in flight."""
    history = JobHistory(job_id="j", known_requested=TWO, in_flight=request)
    return plain_case(observed=observed, history=history, limits=replace(AUTO, **changed))  # type: ignore[arg-type]


def outcome_of(action: Action) -> tuple[Verb, str]:
    return action.verb, str(action.reason)


def test_what_had_arrived_and_is_gone_was_taken_back_by_somebody() -> None:
    assert reconcile(follow(RUNS)).reason == "in_flight"
    action = reconcile(follow(RUNS, replace(SENT, arrived_at_s=NOW_S - 50)))
    assert outcome_of(action) == (Verb.REFUSE, "foreign_change")
    assert action.detail == "somebody else took a request back that had arrived"


@pytest.mark.parametrize("requested", [TWO, FOUR, SIX])
def test_somebody_who_changes_bounds_meanwhile_has_changed_the_job(requested: dict[str, int]) -> None:
    """Lower bounds are changed by nobody else, whatever the upper ones are."""
    observed = replace(RUNS, requested=requested, lower_bounds={"a": 2, "b": 1})
    action = reconcile(follow(observed))
    assert outcome_of(action) == (Verb.REFUSE, "foreign_change")
    assert action.detail == "somebody else changed the job while a request was in flight"


def test_somebody_who_changes_lower_bounds_alone_has_changed_the_job() -> None:
    observed = replace(RUNS, lower_bounds={"a": 2, "b": 1})
    assert reconcile(follow(observed, None)).reason == "foreign_change"
    assert reconcile(follow(replace(RUNS, lower_bounds={"a": 1, "b": 1}), None)).reason == "plan"


@pytest.mark.parametrize(
    ("lower", "reason"), [({"a": 1, "b": 1}, "late_request"), ({"a": 2, "b": 1}, "foreign_change")]
)
def test_a_late_request_brings_no_lower_bounds(lower: dict[str, int], reason: str) -> None:
    case = follow(replace(RUNS, requested=SIX, lower_bounds=lower), None)
    late = replace(case.history, late_requests=(LateRequest(SIX, NOW_S + 60),))
    assert reconcile(replace(case, history=late)).reason == reason


def test_a_job_that_fails_since_its_request_goes_back_at_once() -> None:
    action = reconcile(follow(replace(ASKED, failures=FAILS)))
    assert outcome_of(action) == (Verb.ROLL_BACK, "job_fails")
    assert dict(action.request.target) == TWO
    assert action.detail == "the job fails since the request, it broke again: it is taken back"


@pytest.mark.parametrize(("limits", "observed"), NOTHING_MAY_BE_SENT)
def test_nothing_is_taken_back_while_nothing_may_be_sent(
    limits: dict[str, object], observed: dict[str, object]
) -> None:
    fails = replace(ASKED, failures=FAILS, **observed)  # type: ignore[arg-type]
    assert reconcile(follow(fails, **limits)).reason == "in_flight"
    late = follow(replace(ASKED, **observed), replace(SENT, deadline_s=NOW_S), **limits)  # type: ignore[arg-type]
    assert outcome_of(reconcile(late)) == (Verb.REFUSE, "not_filled")


SAVES = Readiness(Checkpoints(600.0, NOW_S - 60, savepoints=1, state_bytes=1))
FORCED = replace(SENT, forced_at_s=NOW_S + 60)


@pytest.mark.parametrize(("limits", "observed"), NOTHING_MAY_BE_SENT)
def test_a_savepoint_is_spared_where_something_may_be_sent(
    limits: dict[str, object], observed: dict[str, object]
) -> None:
    saves = replace(ASKED, readiness=SAVES)
    assert outcome_of(reconcile(follow(saves, FORCED))) == (Verb.ROLL_BACK, "savepoint_in_progress")
    held_back = follow(replace(saves, **observed), FORCED, **limits)  # type: ignore[arg-type]
    assert reconcile(held_back).reason == "in_flight"


def test_a_savepoint_is_spared_though_slots_are_missing() -> None:
    saves = replace(ASKED, readiness=SAVES, free_slots=1)
    assert outcome_of(reconcile(follow(saves, FORCED))) == (Verb.ROLL_BACK, "savepoint_in_progress")
    assert outcome_of(reconcile(follow(replace(saves, readiness=None), FORCED))) == (Verb.WAIT, "slots_missing")


BACK = replace(SENT, is_rollback=True, slots_came_at_s=math.inf)
LACKS = replace(ASKED, free_slots=1, is_elastic=True)


def go_back(sent_s_ago: float, desired: object, **limits: object) -> Case:
    """Return the case of a job that goes back and lacks slots."""
    sent_at_s = NOW_S - sent_s_ago
    back = replace(BACK, sent_at_s=sent_at_s, deadline_s=sent_at_s + 180, arrived_at_s=sent_at_s + 1)
    return replace(follow(LACKS, back, **limits), desired=desired)


def test_a_way_back_waits_for_its_slots_as_a_rise_does() -> None:
    wanted = follow(LACKS).desired
    for case in (go_back(500, None), go_back(3600, wanted), go_back(500, None, pin_all=3, is_held=True)):
        assert outcome_of(reconcile(case)) == (Verb.WAIT, "slots_missing")


@pytest.mark.parametrize(("sent_s_ago", "limits"), [(700, {}), (700, {"is_held": True}), (60, {"pin_all": 3})])
def test_a_way_back_without_slots_leaves_the_job_to_the_next_decision(
    sent_s_ago: float, limits: dict[str, object]
) -> None:
    """The job waits neither without an end nor on hold, and a person's demand is carried out after the cool-down."""
    case = go_back(sent_s_ago, None, **limits)
    action = reconcile(case)
    assert outcome_of(action) == (Verb.REFUSE, "not_filled")
    assert action.detail.endswith("did not come back in time: it lacks 1 slot, and is no longer waited for")
    history = advance_history(case, action)
    assert (history.in_flight, history.unfilled, history.known_requested) == (None, None, FOUR)
    assert (history.held_until_s, history.bad_steps_s) == (0.0, ())
    pinned = Limits(mode=Mode.AUTO, pin_all=3)
    sent = reconcile(replace(case, history=history, limits=pinned, now_s=NOW_S + pinned.cooldown_s))
    assert outcome_of(sent) == (Verb.RESCALE, "pin")


def test_only_a_savepoint_that_failed_since_the_request_is_to_be_asked_for_again() -> None:
    for failed_s, told in ((-70.0, ""), (-50.0, "; a savepoint failed 10 s after the request: ask for it again")):
        failed = Readiness(replace(SAVES.checkpoints, savepoints=0, savepoint_failed_at_s=NOW_S + failed_s))
        runs = follow(replace(ASKED, running=FOUR, readiness=failed))
        action = reconcile(replace(runs, history=replace(runs.history, ahead_s=0.0)))
        assert outcome_of(action) == (Verb.CONFIRM, "runs_as_requested")
        assert action.detail.partition(";")[1:] == told.partition(";")[1:]


def test_a_rescale_that_has_begun_is_not_taken_back_for_a_savepoint() -> None:
    """Flink has ended it by then, and to go back would stop the job once more."""
    begun = replace(ASKED, running={"a": 3, "b": 2}, readiness=SAVES)
    assert reconcile(follow(begun, FORCED)).reason == "in_flight"
    waits = replace(ASKED, readiness=replace(SAVES, checkpoints=replace(SAVES.checkpoints, in_progress=1)))
    assert reconcile(follow(waits, SENT)).reason == "in_flight"


@pytest.mark.parametrize(
    ("request_", "running", "is_waiting"),
    [
        (FORCED, TWO, True),
        (SENT, TWO, False),
        (replace(FORCED, is_rollback=True), TWO, False),
        (replace(FORCED, running_before={}), {}, False),
    ],
    ids=["waits", "waits for nothing", "takes back", "does not run"],
)
def test_flink_waits_with_a_request_while_the_job_runs_as_before_it(
    request_: Request, running: dict[str, int], is_waiting: bool
) -> None:
    assert is_waited_with(follow(replace(ASKED, running=running), request_)) is is_waiting


def test_a_fall_that_somebody_took_back_has_arrived_where_its_target_runs() -> None:
    """The bounds are those of before again, and the job has not come back to them yet."""
    fall = replace(SENT, target=TWO, before=FOUR, running_before=FOUR)
    assert has_arrived(fall, replace(RUNS, requested=FOUR, running=TWO))
    assert not has_arrived(fall, replace(RUNS, requested=FOUR, running=FOUR))
    assert not has_arrived(replace(fall, running_before=TWO), replace(RUNS, requested=FOUR, running=TWO))


def test_a_request_that_flink_refuses_is_a_bad_step_unless_it_takes_one_back() -> None:
    history = JobHistory(job_id="j", known_requested=TWO, in_flight=SENT)
    assert end_refused_request(history, NOW_S, 600.0).bad_steps_s == (NOW_S,)
    takes_back = replace(history, in_flight=replace(SENT, is_rollback=True))
    assert end_refused_request(takes_back, NOW_S, 600.0).bad_steps_s == ()


@pytest.mark.parametrize(("to_judge", "last_good"), [(None, TWO), (SENT, {"a": 1, "b": 1})])
def test_the_bounds_of_a_job_that_is_down_are_good_unless_our_last_request_is_not_judged(
    to_judge: Request | None, last_good: dict[str, int]
) -> None:
    history = JobHistory(job_id="j", known_requested=TWO, to_judge=to_judge, last_good={"a": 1, "b": 1})
    case = plain_case(observed=replace(RUNS, running={}, state="RESTARTING"), history=history)
    request = replace(SENT, running_before={}, sent_at_s=NOW_S)
    after = advance_history(case, Action(Verb.RESCALE, reconcile(plain_case()).reason, "", request))
    assert after.last_good == last_good
