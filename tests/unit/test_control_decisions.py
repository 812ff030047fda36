"""Each decision in full: its verb, reason, sentence and request, at and around the limits of the rules."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from models.control.approval import StepApproval
from models.control.case import Action, Case, OutcomeCheck, Verb, form_request
from models.control.checks import find_desired
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.resubmission import find_lost, is_resubmitted, restore_lost
from models.control.state import (
    BlockedTarget,
    Intention,
    JobHistory,
    LateRequest,
    Mode,
    ObservedJob,
    Origin,
    Request,
    reserve_slots,
)

NOW_S = 1_000_000.0
ONE, TWO, FOUR, SIX = ({"a": n, "b": n} for n in (1, 2, 4, 6))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory(job_id="j", known_requested=TWO)
AUTO = Limits(mode=Mode.AUTO)
WANTS_FOUR = Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600, settle_s=240.0)
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120, settle_s=200.0)
CASE = Case(NOW_S, WANTS_FOUR, RUNS, KNOWN, AUTO)
AT_FOUR = replace(RUNS, running=FOUR, requested=FOUR)
JUDGED = replace(KNOWN, known_requested=FOUR, last_good=TWO, to_judge=SENT)
WORSE = OutcomeCheck(True, "records wait")


def limits(**changes: Any) -> dict[str, Limits]:
    return {"limits": replace(AUTO, **changes)}


def observed(**changes: Any) -> dict[str, ObservedJob]:
    return {"observed": replace(RUNS, **changes)}


def history(**changes: Any) -> dict[str, JobHistory]:
    return {"history": replace(KNOWN, **changes)}


@pytest.mark.parametrize(
    ("change", "verb", "reason", "detail"),
    [
        (observed(job_id=None), Verb.REFUSE, "unknown_job", "the cluster has no such job"),
        (observed(job_id="k"), Verb.WAIT, "new_job_id", "the job was j, is k; its state is taken over as it is"),
        (history(job_id=None), Verb.WAIT, "new_job_id", "the job is j; its state is taken over as it is"),
        (
            observed(requested=None),
            Verb.REFUSE,
            "no_requirements",
            "without the adaptive scheduler nothing can be sent",
        ),
        (
            observed(requested=None, obstacle="reactive_mode", obstacle_detail="scheduler-mode is reactive"),
            Verb.REFUSE,
            "reactive_mode",
            "scheduler-mode is reactive",
        ),
        (limits(mode=Mode.OFF), Verb.WAIT, "mode_off", "the mode is off"),
        (
            limits(mode=Mode.OFF, settings_changed=True, mode_reason="other"),
            Verb.WAIT,
            "settings_changed",
            "the settings have just been changed",
        ),
        (limits(is_held=True), Verb.REFUSE, "on_hold", "a person has put the job on hold"),
        (
            observed(other_autoscaler="the operator's autoscaler"),
            Verb.REFUSE,
            "other_autoscaler",
            "the operator's autoscaler rescales the job as well",
        ),
        (
            history(held_until_s=NOW_S + 600, held_because="somebody else changed the job"),
            Verb.REFUSE,
            "held",
            "somebody else changed the job; held for 10 more minutes, or until tidewise release",
        ),
        (
            observed(running={}, state="FAILING"),
            Verb.WAIT,
            "not_running",
            "the job is FAILING",
        ),
        (
            observed(running={}, not_at_work="its vertex Join is INITIALIZING"),
            Verb.WAIT,
            "not_running",
            "its vertex Join is INITIALIZING",
        ),
        ({"desired": None}, Verb.WAIT, "as_desired", "nothing to change"),
        ({"desired": None, "remark": "a backlog of 86 s"}, Verb.WAIT, "left_as_is", "a backlog of 86 s"),
        (
            {"desired": replace(WANTS_FOUR, valid_until_s=NOW_S - 1)},
            Verb.REFUSE,
            "expired",
            "the step is past its validity",
        ),
        (
            {"desired": replace(WANTS_FOUR, parallelism={"a": 4, "c": 4})},
            Verb.REFUSE,
            "unknown_operator",
            "the job's vertices are not those of the step: ['b', 'c']",
        ),
        (
            history(blocked=(BlockedTarget(SIX, NOW_S + 60), BlockedTarget(FOUR, NOW_S + 60))),
            Verb.REFUSE,
            "blocked_target",
            "this parallelism did harm lately",
        ),
        (
            observed(obstacle="not_in_place", obstacle_detail="mode is standalone"),
            Verb.REFUSE,
            "not_in_place",
            "mode is standalone",
        ),
        (
            observed(free_slots=0),
            Verb.REFUSE,
            "no_free_slots",
            "2 more slots wanted, 0 free",
        ),
        (
            limits(cluster_slots_max=10),
            Verb.REFUSE,
            "budget_unknown",
            "nobody has counted the slots under the budget of 10",
        ),
        (
            limits(cluster_slots_max=10) | observed(cluster_slots_used=10),
            Verb.REFUSE,
            "exceeds_budget",
            "2 more slots wanted, the cluster's jobs have 10 of 10",
        ),
        (
            limits(allows_falls=False) | {"desired": replace(WANTS_FOUR, parallelism=ONE)},
            Verb.REFUSE,
            "falls_off",
            "scale-downs are switched off",
        ),
        (
            observed(free_slots=None) | {"desired": replace(WANTS_FOUR, parallelism=ONE)},
            Verb.REFUSE,
            "free_slots_unknown",
            "nobody knows whether slots given back could be had again",
        ),
        (limits(in_blackout=True), Verb.WAIT, "blackout", "a blackout window is on"),
        (history(last_change_at_s=NOW_S - 10), Verb.WAIT, "cooldown", "the last change was 10 s ago"),
        (
            limits(rescales_per_hour=2) | history(request_times_s=(NOW_S - 3500, NOW_S - 3000)),
            Verb.WAIT,
            "rescales_per_hour",
            "2 requests within a hour are the limit",
        ),
        (
            limits(rescales_per_day=2) | history(request_times_s=(NOW_S - 80_000, NOW_S - 7000)),
            Verb.WAIT,
            "rescales_per_day",
            "2 requests within a day are the limit",
        ),
        (limits(mode=Mode.APPROVE), Verb.WAIT, "needs_approval", "load rises; it waits for a person's yes"),
        (
            history(in_flight=SENT) | observed(requested=FOUR),
            Verb.WAIT,
            "in_flight",
            "a request is in flight: sent, and not seen in Flink yet",
        ),
        (
            history(in_flight=SENT) | observed(requested=SIX),
            Verb.REFUSE,
            "foreign_change",
            "somebody else changed the job while a request was in flight",
        ),
        (
            history(in_flight=SENT, late_requests=(LateRequest(ONE, NOW_S + 1), LateRequest(SIX, NOW_S + 1)))
            | observed(requested=SIX),
            Verb.WAIT,
            "late_request",
            "a request that was given up has arrived; the job is judged afresh",
        ),
        (
            history(in_flight=replace(SENT, deadline_s=NOW_S)),
            Verb.REFUSE,
            "not_received",
            "the request of step step was lost",
        ),
        (
            history(in_flight=replace(SENT, deadline_s=NOW_S, is_rollback=True)) | observed(requested=FOUR),
            Verb.REFUSE,
            "not_filled",
            "the earlier parallelism did not come back in time",
        ),
        (
            history(in_flight=replace(SENT, deadline_s=NOW_S)) | observed(requested=FOUR) | limits(is_held=True),
            Verb.REFUSE,
            "not_filled",
            "not filled in time, and nothing may be sent to withdraw it",
        ),
        (
            observed(requested=SIX) | limits(foreign_change_hold_s=5400),
            Verb.REFUSE,
            "foreign_change",
            "somebody else changed the job: it is left alone for 1.5 h",
        ),
        (
            {"history": JUDGED, "observed": AT_FOUR, "outcome": WORSE} | limits(in_blackout=True),
            Verb.REFUSE,
            "worse_than_before",
            "records wait; no request is allowed now",
        ),
    ],
)
def test_what_is_not_sent_is_said_in_a_sentence(change: dict[str, Any], verb: Verb, reason: str, detail: str) -> None:
    assert reconcile(replace(CASE, **change)) == Action(verb, reason, detail)


@pytest.mark.parametrize("change", [observed(problem="ambiguous_name", problem_detail="two jobs", job_id=None)])
def test_a_problem_comes_before_everything_else(change: dict[str, Any]) -> None:
    assert reconcile(replace(CASE, **change)) == Action(Verb.REFUSE, "ambiguous_name", "two jobs")


def test_a_request_in_full() -> None:
    asks = replace(RUNS, requested={"a": 2, "b": 3}, running={"a": 2, "b": 2})
    case = replace(CASE, observed=asks, history=replace(KNOWN, known_requested={"a": 2, "b": 3}))
    request = Request("step", "j", FOUR, {"a": 2, "b": 3}, TWO, NOW_S, NOW_S + 180, 240.0, is_rollback=False)
    assert reconcile(case) == Action(Verb.RESCALE, "plan", "load rises", request, is_dry_run=False)
    assert reconcile(replace(case, limits=Limits())) == Action(Verb.RESCALE, "plan", "load rises", request, True)
    costly = reconcile(replace(case, observed=replace(asks, upgrade_reason="in-place scaling is off")))
    reported = "load rises; the job is stopped and started for it: in-place scaling is off"
    assert costly == Action(Verb.RESCALE, "plan", reported, request)


def test_a_request_of_a_job_of_which_nothing_is_known() -> None:
    nothing = Case(NOW_S, None, ObservedJob(None, "", {}, None), JobHistory(), AUTO)
    assert form_request(nothing, "s", FOUR, 5.0) == Request("s", "", FOUR, {}, {}, NOW_S, NOW_S + 180, 5.0)


def test_a_request_is_confirmed_as_it_was_sent() -> None:
    case = replace(CASE, observed=AT_FOUR, history=replace(KNOWN, in_flight=SENT))
    assert reconcile(case) == Action(Verb.CONFIRM, "runs_as_requested", "", SENT)


def test_a_request_that_is_not_filled_is_withdrawn_to_what_runs() -> None:
    half = replace(RUNS, requested=FOUR, running={"a": 4, "b": 3})
    in_flight = replace(SENT, deadline_s=NOW_S)
    back = Request(
        "step-withdrawn", "j", {"a": 4, "b": 3}, FOUR, {"a": 4, "b": 3}, NOW_S, NOW_S + 180, 200.0, is_rollback=True
    )
    reported = "Flink did not fill the request in time: its bound is withdrawn"
    expected = Action(Verb.ROLL_BACK, "not_filled", reported, back)
    assert reconcile(replace(CASE, observed=half, history=replace(KNOWN, in_flight=in_flight))) == expected
    remaining = replace(KNOWN, known_requested=FOUR, unfilled=SENT)
    assert reconcile(replace(CASE, observed=half, history=remaining)) == expected
    for change in (observed(requested=FOUR, running={}), {"observed": half} | limits(mode=Mode.OFF)):
        assert reconcile(replace(CASE, history=remaining, **change)).request is None
    # Somebody asks for something else meanwhile: the old bound is not there any more.
    known = replace(remaining, known_requested=SIX)
    assert reconcile(replace(CASE, observed=replace(half, requested=SIX), history=known)).verb is Verb.RESCALE


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({}, True),
        (limits(mode=Mode.APPROVE), True),
        (limits(mode=Mode.DRY_RUN), False),
        (limits(in_blackout=True), False),
        ({"observed": replace(AT_FOUR, obstacle="not_in_place")}, False),
        (limits(rescales_per_hour=0), True),
        ({"history": replace(JUDGED, last_change_at_s=NOW_S)}, True),  # it waits for no pace
    ],
)
def test_a_rollback_needs_no_yes_and_no_pace_but_what_is_allowed_at_all(change: dict[str, Any], may: bool) -> None:
    case = replace(CASE, **({"history": JUDGED, "observed": AT_FOUR, "outcome": WORSE} | change))
    back = Request("step-rollback", "j", TWO, FOUR, FOUR, NOW_S, NOW_S + 180, 200.0, is_rollback=True)
    action = reconcile(case)
    assert (action == Action(Verb.ROLL_BACK, "worse_than_before", "records wait", back)) is may
    assert action.reason == "worse_than_before"


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": OutcomeCheck(None)},
        {"outcome": OutcomeCheck(False)},
        {"history": replace(JUDGED, to_judge=replace(SENT, is_rollback=True))},
        {"history": replace(JUDGED, to_judge=None)},
        {"history": replace(JUDGED, last_good=None)},
        {"history": replace(JUDGED, last_good=FOUR)},
    ],
)
def test_nothing_is_rolled_back_without_harm_or_without_a_way_back(change: dict[str, Any]) -> None:
    case = replace(CASE, **({"history": JUDGED, "observed": AT_FOUR, "outcome": WORSE} | change))
    assert reconcile(case) == Action(Verb.WAIT, "as_desired", "nothing to change")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (history(held_until_s=NOW_S), "plan"),
        ({"desired": replace(WANTS_FOUR, valid_until_s=NOW_S)}, "plan"),
        (history(blocked=(BlockedTarget(FOUR, NOW_S),)), "plan"),
        (history(blocked=(BlockedTarget(SIX, NOW_S + 60),)), "plan"),
        (observed(free_slots=2), "plan"),
        (observed(free_slots=None), "free_slots_unknown"),
        (observed(free_slots=None, is_elastic=True), "plan"),
        (limits(cluster_slots_max=10) | observed(cluster_slots_used=8), "plan"),
        (history(last_change_at_s=NOW_S - 300), "plan"),
        (history(last_change_at_s=NOW_S - 299), "cooldown"),
        (limits(rescales_per_hour=1) | history(request_times_s=(NOW_S - 3600,)), "plan"),
        (limits(rescales_per_hour=1) | history(request_times_s=(NOW_S - 3599,)), "rescales_per_hour"),
        (limits(rescales_per_day=1) | history(request_times_s=(NOW_S - 86_400,)), "plan"),
        (limits(rescales_per_day=1) | history(request_times_s=(NOW_S - 86_399,)), "rescales_per_day"),
        (history(in_flight=replace(SENT, deadline_s=NOW_S + 1)), "in_flight"),
        (history(in_flight=replace(SENT, deadline_s=NOW_S - 1)), "not_received"),
        (limits(slots_max=3), "plan"),  # brought within
        (limits(slots_max=4), "plan"),
        (history(known_requested=None), "foreign_change"),
        (observed(upgrade_reason="in-place scaling is off"), "plan"),
        (observed(upgrade_reason="off") | history(lost=SIX), "upgrade_loses_map"),
        (history(lost=SIX), "plan"),
    ],
)
def test_at_its_limit_a_rule_does_not_hold_any_more(change: dict[str, Any], reason: str) -> None:
    assert reconcile(replace(CASE, **change)).reason == reason


def test_a_job_above_its_slots_neither_rises_nor_stays_but_falls() -> None:
    wide = replace(RUNS, requested=SIX, running=SIX, slot_sharing_group={"b": "own"})  # 12 slots
    known = replace(KNOWN, known_requested=SIX)
    narrow = replace(AUTO, slots_max=8, step_down_max_slots=1)
    wants = replace(WANTS_FOUR, parallelism={"a": 7, "b": 5})
    action = reconcile(replace(CASE, observed=wide, history=known, limits=narrow, desired=wants))
    assert (action.verb, sum(action.request.target.values())) == (Verb.RESCALE, 11)


def test_a_rise_beyond_the_slots_is_refused_with_both_numbers() -> None:
    """Vertices of one slot each in groups of their own: three slots are the least."""
    three = dict.fromkeys("abc", 1)
    groups = {name: name for name in "abc"}
    runs = ObservedJob("j", "RUNNING", {"a": 1, "b": 1}, three, slot_sharing_group=groups, free_slots=8)
    case = replace(
        CASE,
        observed=runs,
        history=replace(KNOWN, known_requested=three),
        desired=replace(WANTS_FOUR, parallelism={"a": 2, "b": 1, "c": 1}),
        limits=replace(AUTO, slots_max=2),
    )
    assert reconcile(case).reason == "as_desired"  # bounded to one instance of each, as it is
    case = replace(case, history=replace(KNOWN, known_requested={**three, "c": 2}))
    case = replace(case, observed=replace(runs, requested={**three, "c": 2}))
    assert reconcile(case) == Action(Verb.REFUSE, "exceeds_slots", "slots wanted: 3, at most 2")


@pytest.mark.parametrize(
    ("state", "origin", "parallelism", "verb"),
    [
        ("RESTARTING", Origin.REACTIVE, FOUR, Verb.RESCALE),
        ("CREATED", Origin.REACTIVE, FOUR, Verb.RESCALE),
        ("RESTARTING", Origin.REACTIVE, {"a": 1, "b": 2}, Verb.WAIT),  # as many slots as before
        ("RESTARTING", Origin.PLAN, FOUR, Verb.WAIT),
        ("FAILING", Origin.REACTIVE, FOUR, Verb.WAIT),
    ],
)
def test_a_job_that_does_not_run(state: str, origin: Origin, parallelism: dict[str, int], verb: Verb) -> None:
    desired = replace(WANTS_FOUR, origin=origin, parallelism=parallelism)
    assert reconcile(replace(CASE, desired=desired, **observed(running={}, state=state))).verb is verb


YES = StepApproval("step", TWO, FOUR, True, NOW_S - 60, NOW_S + 60, "ada")


def test_a_no_is_told_with_its_author() -> None:
    no = replace(YES, is_approved=False)
    approve = replace(AUTO, mode=Mode.APPROVE)
    denied = reconcile(replace(CASE, limits=replace(approve, approvals=(no,))))
    assert denied == Action(Verb.REFUSE, "denied", "ada has said no")
    nameless = replace(approve, approvals=(replace(no, by=""),))
    assert reconcile(replace(CASE, limits=nameless)).detail == "a person has said no"


def test_a_yes_was_said_to_what_is_requested_or_to_what_runs() -> None:
    half = replace(RUNS, requested=TWO, running={"a": 2, "b": 1})
    approve = replace(AUTO, mode=Mode.APPROVE)
    for before, reason in ((TWO, "plan"), ({"a": 2, "b": 1}, "plan"), (ONE, "needs_approval")):
        allowed = replace(approve, approvals=(replace(YES, before=before),))
        assert reconcile(replace(CASE, observed=half, limits=allowed)).reason == reason
    for sent_s, reason in ((NOW_S - 61, "plan"), (NOW_S - 60, "needs_approval")):  # used up by a request
        used = replace(KNOWN, request_times_s=(NOW_S - 9000, sent_s))
        case = replace(CASE, limits=replace(approve, approvals=(YES,)), history=used)
        assert reconcile(case).reason == reason


def test_what_a_person_pins_is_an_intention_of_its_own() -> None:
    pinned = find_desired(replace(CASE, desired=None, **limits(pin={"a": 3})))
    assert pinned == Intention({"a": 3, "b": 2}, Origin.PIN, "pin", "pinned by a person", NOW_S + 86_400)
    planned = find_desired(replace(CASE, desired=replace(WANTS_FOUR, valid_until_s=NOW_S), **limits(pin={"a": 3})))
    assert planned == replace(WANTS_FOUR, parallelism={"a": 3, "b": 4}, valid_until_s=NOW_S)
    everything = find_desired(replace(CASE, **limits(pin={"a": 3, "b": 3})))
    assert everything == Intention({"a": 3, "b": 3}, Origin.PIN, "pin", "pinned by a person", NOW_S + 86_400)
    assert Limits(pin_all=5, pin={"a": 3}).pin_of(["a", "b"]) == {"a": 3, "b": 5}
    assert Limits().pin_of(["a"]) == {}


RESOURCE = replace(RUNS, declared=FOUR)


def test_what_a_resource_holds_and_flink_lost_is_asked_for_again() -> None:
    case = replace(CASE, desired=None, observed=RESOURCE, history=replace(KNOWN, lost=FOUR))
    reason = "the resource holds this parallelism, which Flink lost when it was given the job again (FLINK-38770)"
    assert restore_lost(case) == Intention(FOUR, Origin.RESTORE, "restore", reason, NOW_S + 86_400)
    for change in (
        {"history": KNOWN},
        observed(declared=None),
        observed(declared={"a": 4, "b": 5}),
        observed(declared={"a": 4}),
    ):
        assert restore_lost(replace(case, **change)) is None


def test_what_is_lost_is_known_and_complete() -> None:
    forgotten = JobHistory(job_id="j", known_requested=SIX)
    for known in (
        replace(forgotten, known_requested=FOUR),
        replace(forgotten, in_flight=SENT),
        replace(forgotten, lost=FOUR),
        replace(forgotten, known_requested=None, lost=FOUR),
    ):
        assert find_lost(known, RESOURCE) == FOUR
    assert find_lost(forgotten, RESOURCE) is None  # nobody here has asked for it
    assert find_lost(replace(forgotten, lost=FOUR), replace(RESOURCE, declared={"a": 4})) is None
    assert find_lost(replace(forgotten, lost=FOUR), replace(RESOURCE, declared={**FOUR, "c": 1})) == FOUR
    assert find_lost(replace(forgotten, lost=FOUR), replace(RESOURCE, declared=None)) is None
    assert find_lost(replace(forgotten, lost={}), replace(RESOURCE, requested=None)) is None


@pytest.mark.parametrize(
    ("declared", "known_s", "told_s", "is_again"),
    [
        (FOUR, 100.0, 101.001, True),
        (FOUR, 101.001, 100.0, True),
        (FOUR, 100.0, 101.0, False),  # Flink's clock in milliseconds
        (None, 100.0, 500.0, True),  # a new JobManager
        (FOUR, None, 500.0, False),
        (FOUR, 100.0, None, False),
    ],
)
def test_a_job_is_submitted_again_when_flink_tells_another_time(
    declared: dict[str, int] | None, known_s: float | None, told_s: float | None, is_again: bool
) -> None:
    recorded = replace(RUNS, declared=declared, submitted_at_s=told_s)
    case = replace(CASE, observed=recorded, history=replace(KNOWN, submitted_at_s=known_s))
    assert is_resubmitted(case) is is_again
    reported = Action(
        Verb.WAIT,
        "new_job_id",
        "the job was submitted again, or has a new JobManager; its state is taken over as it is",
    )
    assert (reconcile(case) == reported) is is_again


def test_slots_of_a_job() -> None:
    job = ObservedJob("j", "RUNNING", {"a": 3, "b": 2}, SIX, slot_sharing_group={"b": "own"})
    assert job.slots == 5
    assert replace(job, running={}).slots == 12
    assert replace(job, running={}, requested=None).slots == 0
    assert job.slots_of({"b": 4, "c": 2, "a": 1}) == 6  # c is in the group of a
    assert [job.runs_at(one) for one in ({"a": 3, "b": 2}, {"a": 3, "b": 2, "c": 9}, {"a": 3}, {"a": 3, "b": 3})] == [
        *(True, True),
        *(False, False),
    ]
    assert not replace(job, running={}).runs_at({})


def test_slots_reserved_for_another_job_are_never_below_none() -> None:
    recorded = replace(RUNS, free_slots=2, cluster_slots_used=4)
    assert reserve_slots(recorded, 3) == replace(recorded, free_slots=0, cluster_slots_used=7)
    assert reserve_slots(recorded, 0) == recorded
    assert reserve_slots(recorded, -2) == recorded
    unknown = replace(RUNS, free_slots=None)
    assert reserve_slots(unknown, 1) == unknown


def test_a_limit_without_an_end_is_none() -> None:
    assert math.isinf(AUTO.cluster_slots_max)
    assert reconcile(replace(CASE, **observed(cluster_slots_used=10**6))).verb is Verb.RESCALE
