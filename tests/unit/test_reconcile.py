"""The controller's rules, one by one: what it waits for, sends, confirms, takes back and refuses."""

from dataclasses import replace

import pytest

from models.control.approval import StepApproval
from models.control.bounds import bound_target
from models.control.case import Case, OutcomeCheck, Verb
from models.control.clock_steps import bound_times
from models.control.history import advance_history, end_refused_request
from models.control.limits import Limits, combine_limits
from models.control.outcome import Measurements, judge_outcome
from models.control.reconcile import reconcile
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
TWO, FOUR, SIX = ({"a": n, "b": n} for n in (2, 4, 6))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory(job_id="j", known_requested=TWO)
AUTO = Limits(mode=Mode.AUTO)
WANTS_FOUR = Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600)
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)
CASE = Case(NOW_S, WANTS_FOUR, RUNS, KNOWN, AUTO)


@pytest.mark.covers("apply_review 1")
def test_what_is_desired_is_sent_once_and_confirmed_when_it_runs() -> None:
    action = reconcile(CASE)
    assert (action.verb, action.request.target) == (Verb.RESCALE, FOUR)
    after = advance_history(CASE, action)
    waiting = replace(CASE, history=after, observed=replace(RUNS, requested=FOUR))
    assert reconcile(waiting).reason == "in_flight"
    arrived = replace(waiting, observed=replace(RUNS, requested=FOUR, running=FOUR))
    confirmed = reconcile(arrived)
    assert confirmed.verb is Verb.CONFIRM
    done = advance_history(arrived, confirmed)
    assert (done.in_flight, done.known_requested, done.last_good, done.to_judge) == (None, FOUR, TWO, action.request)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"observed": replace(RUNS, job_id=None)}, "unknown_job"),
        ({"observed": replace(RUNS, job_id="k")}, "new_job_id"),
        ({"observed": replace(RUNS, problem="ambiguous_name")}, "ambiguous_name"),
        ({"observed": replace(RUNS, requested=None)}, "no_requirements"),
        ({"observed": replace(RUNS, requested=None, obstacle="reactive_mode")}, "reactive_mode"),
        ({"observed": replace(RUNS, requested=SIX, running=SIX)}, "foreign_change"),
        ({"observed": replace(RUNS, other_autoscaler="the operator's autoscaler")}, "other_autoscaler"),
        ({"observed": replace(RUNS, state="FAILING", running={})}, "not_running"),
        ({"observed": replace(RUNS, free_slots=0)}, "no_free_slots"),
        ({"observed": replace(RUNS, free_slots=None)}, "free_slots_unknown"),
        ({"limits": replace(AUTO, mode=Mode.OFF)}, "mode_off"),
        ({"limits": replace(AUTO, mode=Mode.OFF, settings_changed=True)}, "settings_changed"),
        ({"limits": replace(AUTO, is_held=True)}, "on_hold"),
        ({"limits": replace(AUTO, in_blackout=True)}, "blackout"),
        ({"limits": replace(AUTO, mode=Mode.APPROVE)}, "needs_approval"),
        ({"limits": replace(AUTO, rescales_per_hour=0)}, "rescales_per_hour"),
        ({"limits": replace(AUTO, rescales_per_day=0)}, "rescales_per_day"),
        ({"history": replace(KNOWN, held_until_s=NOW_S + 60)}, "held"),
        ({"history": replace(KNOWN, last_change_at_s=NOW_S - 10)}, "cooldown"),
        ({"history": replace(KNOWN, blocked=(BlockedTarget(FOUR, NOW_S + 1),))}, "blocked_target"),
        (
            {
                "history": replace(KNOWN, late_requests=(LateRequest(SIX, NOW_S + 1),)),
                "observed": replace(RUNS, requested=SIX),
            },
            "late_request",
        ),
        ({"desired": None}, "as_desired"),
        ({"desired": replace(WANTS_FOUR, parallelism=TWO)}, "as_desired"),
        ({"desired": replace(WANTS_FOUR, valid_until_s=NOW_S - 1)}, "expired"),
        ({"desired": replace(WANTS_FOUR, parallelism={"a": 4})}, "unknown_operator"),
    ],
)
def test_nothing_is_sent(change: dict[str, object], reason: str) -> None:
    action = reconcile(replace(CASE, **change))
    assert (action.verb in {Verb.WAIT, Verb.REFUSE}, action.reason) == (True, reason)
    assert action.request is None


def test_a_dry_run_says_what_it_would_send_and_changes_nothing() -> None:
    case = replace(CASE, limits=Limits())
    action = reconcile(case)
    assert (action.verb, action.is_dry_run) == (Verb.RESCALE, True)
    assert advance_history(case, action) == KNOWN


@pytest.mark.parametrize(
    ("observed", "limits", "reason"),
    [
        (replace(RUNS, free_slots=None), AUTO, "free_slots_unknown"),
        (replace(RUNS, free_slots=None, is_elastic=True), AUTO, "plan"),
        (RUNS, replace(AUTO, allows_falls=False), "falls_off"),
        (RUNS, AUTO, "plan"),
    ],
)
def test_a_job_is_made_smaller_where_it_could_grow_back(observed: ObservedJob, limits: Limits, reason: str) -> None:
    one = replace(WANTS_FOUR, parallelism={"a": 1, "b": 1})
    assert reconcile(replace(CASE, desired=one, observed=observed, limits=limits)).reason == reason


def test_a_job_that_restarts_takes_a_rise_of_the_reactive_controller_alone() -> None:
    restarts = replace(RUNS, state="RESTARTING", running={})
    reactive = replace(WANTS_FOUR, origin=Origin.REACTIVE)
    assert reconcile(replace(CASE, observed=restarts)).reason == "not_running"
    assert reconcile(replace(CASE, observed=restarts, desired=reactive)).verb is Verb.RESCALE


@pytest.mark.parametrize(
    ("requested", "verb", "reason"),
    [(FOUR, Verb.ROLL_BACK, "not_filled"), (TWO, Verb.REFUSE, "not_received"), (SIX, Verb.REFUSE, "foreign_change")],
)
def test_a_request_without_confirmation_ends_at_its_deadline(
    requested: dict[str, int], verb: Verb, reason: str
) -> None:
    late = replace(SENT, deadline_s=NOW_S)
    case = replace(CASE, history=replace(KNOWN, in_flight=late), observed=replace(RUNS, requested=requested))
    action = reconcile(case)
    assert (action.verb, action.reason) == (verb, reason)
    after = advance_history(case, action)
    if verb is Verb.ROLL_BACK:
        assert (action.request.target, after.in_flight, after.blocked[0].parallelism) == (TWO, action.request, FOUR)
    else:
        assert (after.in_flight, after.known_requested) == (None, requested)
        assert [one.target for one in after.late_requests] == ([] if requested == FOUR else [FOUR])


def test_a_job_that_is_worse_than_before_returns_once_and_the_target_is_blocked() -> None:
    history = replace(KNOWN, known_requested=FOUR, last_good=TWO, to_judge=SENT, confirmed_at_s=NOW_S - 900)
    runs = replace(RUNS, running=FOUR, requested=FOUR)
    case = replace(CASE, history=history, observed=runs, outcome=OutcomeCheck(True, "records wait"))
    action = reconcile(case)
    assert (action.verb, action.request.target, action.request.is_rollback) == (Verb.ROLL_BACK, TWO, True)
    after = advance_history(case, action)
    assert (after.to_judge, after.blocked[-1].parallelism) == (None, FOUR)
    fine = replace(case, outcome=OutcomeCheck(False))
    assert advance_history(fine, reconcile(fine)).to_judge is None


def test_a_request_that_flink_refuses_is_not_tried_again_for_a_time() -> None:
    after = end_refused_request(replace(KNOWN, in_flight=SENT), NOW_S, 60.0)
    assert (after.in_flight, after.blocked) == (
        None,
        (BlockedTarget(FOUR, NOW_S + 60.0, because="Flink has refused it lately"),),
    )


def test_a_person_s_pin_comes_before_plans() -> None:
    action = reconcile(replace(CASE, limits=replace(AUTO, pin={"a": 3, "b": 3})))
    assert (action.reason, action.request.target) == ("pin", {"a": 3, "b": 3})


@pytest.mark.parametrize(
    ("limits", "bounded"),
    [
        ({"slots_max": 3}, 3),
        ({"step_up_max_slots": 1}, 3),
        ({"step_up_max_share": 0.1}, 3),
        ({"slots_min": 7}, 7),
        ({}, 6),
    ],
)
def test_a_target_is_brought_within_the_limits(limits: dict[str, float], bounded: int) -> None:
    assert bound_target(SIX, RUNS, replace(AUTO, **limits)) == {"a": bounded, "b": bounded}


def test_slots_are_those_of_all_slot_sharing_groups() -> None:
    grouped = replace(RUNS, slot_sharing_group={"b": "own"}, max_parallelism={"a": 5})
    assert grouped.slots_of(FOUR) == 8
    assert bound_target(SIX, grouped, replace(AUTO, slots_max=9)) == {"a": 4, "b": 4}


def test_of_several_levels_the_strictest_limit_holds() -> None:
    fleet = Limits(mode=Mode.AUTO, slots_max=32, slots_min=1, cooldown_s=60)
    job = Limits(mode=Mode.APPROVE, slots_max=64, slots_min=4, cooldown_s=600, is_held=True, pin=TWO)
    both = combine_limits([fleet, job])
    assert (both.mode, both.slots_max, both.slots_min, both.cooldown_s) == (Mode.APPROVE, 32, 4, 600)
    assert (both.is_held, both.pin) == (True, TWO)
    with pytest.raises(ValueError, match="slots_min = 4 is above slots_max = 2"):
        combine_limits([job, replace(fleet, slots_max=2)])


BEFORE = Measurements(NOW_S, 1000.0, 1000.0, 0.1, 5.0, 0)
LATER_S = NOW_S + 900.0


@pytest.mark.parametrize(
    ("after", "is_worse"),
    [
        (Measurements(NOW_S + 100, 100.0, 1000.0, 0.9, 500.0, 3), None),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.1, 5.0, 0), False),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.1, 5.0, 2), True),
        (Measurements(LATER_S, 800.0, 1000.0, 0.1, 200.0, 0), True),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.9, 200.0, 0), False),
        (Measurements(LATER_S, 1000.0, 1500.0, 0.9, 200.0, 0), False),
        (Measurements(LATER_S, 800.0, 1000.0, 0.1, 20.0, 0), False),
    ],
)
def test_a_rescale_is_judged_after_the_job_has_caught_up(after: Measurements, is_worse: bool | None) -> None:
    assert judge_outcome(SENT, NOW_S, BEFORE, after).is_worse is is_worse


@pytest.mark.covers("apply_review 14")
def test_a_job_that_cannot_be_told_from_another_is_refused_before_anything_else() -> None:
    observed = ObservedJob(None, "", {}, None, problem="ambiguous_name", problem_detail="two jobs")
    in_flight = replace(CASE, observed=observed, history=replace(KNOWN, in_flight=SENT))
    action = reconcile(in_flight)
    assert (action.verb, action.reason, action.detail) == (Verb.REFUSE, "ambiguous_name", "two jobs")
    assert advance_history(in_flight, action) == in_flight.history


@pytest.mark.covers("apply_review 19 finished vertex")
def test_a_vertex_that_has_finished_hinders_no_confirmation_and_is_in_every_request() -> None:
    runs = replace(RUNS, running={"b": 4}, requested=FOUR)
    case = replace(CASE, observed=runs, history=replace(KNOWN, in_flight=SENT))
    assert reconcile(case).verb is Verb.CONFIRM
    assert reconcile(replace(case, observed=replace(runs, running={}))).reason == "in_flight"
    late = replace(case, now_s=SENT.deadline_s, observed=replace(runs, running={"b": 3}))
    withdrawn = reconcile(late)
    assert (withdrawn.reason, withdrawn.request.target) == ("not_filled", {"a": 2, "b": 3})
    judged = replace(KNOWN, known_requested=FOUR, to_judge=SENT, last_good={"b": 2})
    worse = replace(CASE, observed=runs, history=judged, outcome=OutcomeCheck(True, "slower"))
    assert reconcile(worse).request.target == {"a": 4, "b": 2}


def test_an_intention_with_an_objection_is_refused_by_its_name() -> None:
    stale = replace(WANTS_FOUR, objection="stale_plan", objection_detail="the plan is 3 h old")
    action = reconcile(replace(CASE, desired=stale))
    assert (action.verb, action.reason, action.detail) == (Verb.REFUSE, "stale_plan", "the plan is 3 h old")
    pinned = reconcile(replace(CASE, desired=stale, limits=replace(AUTO, pin_all=3)))
    assert (pinned.reason, pinned.request.target) == ("pin", {"a": 3, "b": 3})


def test_what_stops_a_job_is_said() -> None:
    for limits, reported in (
        ({"mode": Mode.OFF, "mode_reason": "the settings cannot be used"}, "the settings cannot be used"),
        ({"is_held": True, "hold_reason": "c is on hold by ada"}, "c is on hold by ada"),
        ({"in_blackout": True, "blackout_reason": "limits.blackouts: night"}, "limits.blackouts: night"),
    ):
        assert reconcile(replace(CASE, limits=replace(AUTO, **limits))).detail == reported


@pytest.mark.parametrize(
    ("free_slots", "is_elastic", "reason"),
    [
        (0, None, "free_slots_unknown"),
        (None, None, "free_slots_unknown"),
        (None, False, "free_slots_unknown"),
        (1, None, "plan"),
        (0, False, "plan"),
        (0, True, "plan"),
    ],
)
@pytest.mark.covers("apply_review 4")
def test_a_fall_is_sent_only_where_slots_can_be_had_again(free_slots, is_elastic, reason: str) -> None:
    observed = replace(RUNS, free_slots=free_slots, is_elastic=is_elastic)
    one = replace(WANTS_FOUR, parallelism={"a": 1, "b": 1})
    assert reconcile(replace(CASE, observed=observed, desired=one)).reason == reason


@pytest.mark.covers("apply_review 4")
def test_a_job_on_a_cluster_with_elastic_slots_rises_although_none_is_free() -> None:
    elastic = replace(RUNS, free_slots=0, is_elastic=True)
    assert reconcile(replace(CASE, observed=elastic)).request.target == FOUR
    assert reconcile(replace(CASE, observed=replace(elastic, is_elastic=False))).reason == "no_free_slots"


@pytest.mark.parametrize(("used", "reason"), [(8, "plan"), (10, "exceeds_budget"), (None, "budget_unknown")])
def test_the_jobs_of_a_cluster_keep_within_its_budget(used: int | None, reason: str) -> None:
    observed, limits = replace(RUNS, cluster_slots_used=used), replace(AUTO, cluster_slots_max=10)
    assert reconcile(replace(CASE, observed=observed, limits=limits)).reason == reason
    one = replace(WANTS_FOUR, parallelism={"a": 1, "b": 1})
    assert reconcile(replace(CASE, observed=observed, limits=limits, desired=one)).reason == "plan"


def test_slots_that_another_job_was_given_in_the_same_tick_are_taken() -> None:
    after = reserve_slots(replace(RUNS, cluster_slots_used=4), 3)
    assert (after.free_slots, after.cluster_slots_used) == (5, 7)
    assert reserve_slots(RUNS, -3) == RUNS
    assert reserve_slots(replace(RUNS, free_slots=None), 3).free_slots is None


@pytest.mark.parametrize(
    ("limits", "wanted", "bounded"),
    [
        ({"step_down_max_slots": 1}, {"a": 1, "b": 1}, {"a": 5, "b": 1}),
        ({"step_down_max_share": 0.5}, {"a": 1, "b": 1}, {"a": 3, "b": 1}),
        ({"step_up_max_slots": 2}, {"a": 9, "b": 9}, {"a": 8, "b": 4}),
        ({"slots_max": 4, "step_down_max_slots": 1}, {"a": 6, "b": 2}, {"a": 5, "b": 2}),
        ({"allows_falls": False}, {"a": 7, "b": 1}, {"a": 7, "b": 2}),
        ({"pin": {"a": 6}, "slots_min": 8}, {"a": 6, "b": 2}, {"a": 6, "b": 8}),
    ],
)
@pytest.mark.covers("apply_review 20")
def test_steps_are_bounded_for_each_vertex_and_for_the_slots(limits, wanted, bounded) -> None:
    observed = ObservedJob("j", "RUNNING", {"a": 6, "b": 2}, {"a": 6, "b": 2}, free_slots=8)
    assert bound_target(wanted, observed, replace(AUTO, **limits)) == bounded


@pytest.mark.covers("apply_review 19")
def test_a_step_of_a_job_with_two_slot_sharing_groups_is_bounded_in_slots() -> None:
    observed = ObservedJob("j", "RUNNING", {"a": 4, "b": 4}, {"a": 4, "b": 4}, {"a": 5}, {"b": "own"}, free_slots=8)
    assert bound_target({"a": 1, "b": 1}, observed, replace(AUTO, step_down_max_slots=1)) == {"a": 4, "b": 3}
    assert bound_target({"a": 9, "b": 9}, observed, AUTO) == {"a": 5, "b": 9}


def test_a_pin_of_some_vertices_leaves_the_others_to_the_plan() -> None:
    limits = replace(AUTO, pin={"a": 3})
    planned = reconcile(replace(CASE, limits=limits))
    assert (planned.reason, planned.request.target) == ("plan", {"a": 3, "b": 4})
    late = replace(WANTS_FOUR, valid_until_s=NOW_S - 1)
    for desired in (None, late, replace(WANTS_FOUR, objection="stale_plan")):
        alone = reconcile(replace(CASE, limits=limits, desired=desired))
        assert (alone.reason, alone.request.target) == ("pin", {"a": 3, "b": 2})


def test_a_person_s_pin_is_not_rolled_back() -> None:
    history = replace(KNOWN, known_requested=FOUR, last_good=TWO, to_judge=SENT, confirmed_at_s=NOW_S - 900)
    runs = replace(RUNS, running=FOUR, requested=FOUR)
    case = replace(CASE, history=history, observed=runs, outcome=OutcomeCheck(True, "records wait"))
    assert reconcile(replace(case, limits=replace(AUTO, pin_all=4))).reason == "as_desired"
    partly = reconcile(replace(case, limits=replace(AUTO, pin={"a": 4})))
    assert (partly.verb, partly.request.target) == (Verb.ROLL_BACK, {"a": 4, "b": 2})


def test_a_rollback_is_one_request_whatever_the_largest_step() -> None:
    history = replace(KNOWN, known_requested=FOUR, last_good=TWO, to_judge=SENT, confirmed_at_s=NOW_S - 900)
    runs = replace(RUNS, running=FOUR, requested=FOUR)
    case = replace(CASE, history=history, observed=runs, outcome=OutcomeCheck(True, "records wait"))
    assert reconcile(replace(case, limits=replace(AUTO, step_down_max_slots=1))).request.target == TWO


YES = StepApproval("step", TWO, FOUR, True, NOW_S - 60, NOW_S + 60, "ada")


@pytest.mark.parametrize(
    ("approvals", "change", "reason"),
    [
        ([YES], {}, "plan"),
        ([replace(YES, step_id="of an older plan")], {}, "plan"),
        ([replace(YES, target=SIX)], {}, "needs_approval"),
        ([replace(YES, before=SIX)], {}, "needs_approval"),
        ([replace(YES, until_s=NOW_S)], {}, "needs_approval"),
        ([YES, replace(YES, is_approved=False)], {}, "denied"),
        ([replace(YES, is_approved=False, target=SIX)], {}, "denied"),
        ([replace(YES, is_approved=False, step_id="another")], {}, "denied"),
        ([replace(YES, is_approved=False, until_s=NOW_S)], {}, "needs_approval"),
        ([YES], {"history": replace(KNOWN, request_times_s=(NOW_S - 30,))}, "needs_approval"),
        ([YES], {"history": replace(KNOWN, request_times_s=(NOW_S - 90,))}, "plan"),
    ],
)
def test_a_yes_is_to_one_change_and_for_one_request(approvals, change: dict[str, object], reason: str) -> None:
    limits = replace(AUTO, mode=Mode.APPROVE, approvals=tuple(approvals))
    assert reconcile(replace(CASE, limits=limits, **change)).reason == reason


def test_a_pin_needs_no_yes() -> None:
    assert reconcile(replace(CASE, limits=replace(AUTO, mode=Mode.APPROVE, pin_all=3))).reason == "pin"


@pytest.mark.covers("apply_review 6")
@pytest.mark.parametrize(("requested", "is_held"), [(TWO, False), (FOUR, True)])
def test_a_deployment_with_another_parallelism_is_left_alone(requested: dict[str, int], is_held: bool) -> None:
    case = replace(CASE, observed=replace(RUNS, job_id="k", requested=requested, running=requested))
    after = advance_history(case, reconcile(case))
    assert (after.job_id, after.known_requested) == ("k", requested)
    assert (after.held_until_s > NOW_S) is is_held
    first = replace(case, history=JobHistory())
    assert advance_history(first, reconcile(first)).held_until_s == 0.0


@pytest.mark.covers("apply_review 6")
def test_a_person_s_rescale_is_left_alone_for_the_whole_time() -> None:
    twelve = {"a": 12, "b": 12}
    observed = replace(CASE, observed=replace(RUNS, requested=twelve, running=twelve))
    after = advance_history(observed, reconcile(observed))
    for hours, reason in ((0.1, "held"), (3.9, "held"), (4.1, "plan")):
        now_s = NOW_S + 3600 * hours
        later = replace(observed, now_s=now_s, history=after, desired=replace(WANTS_FOUR, valid_until_s=now_s + 60))
        assert reconcile(later).reason == reason


@pytest.mark.covers("apply_review 15")
def test_the_request_of_a_job_that_is_gone_ends() -> None:
    gone = replace(CASE, observed=replace(RUNS, job_id=None), history=replace(KNOWN, in_flight=SENT))
    assert advance_history(gone, reconcile(gone)).in_flight == SENT
    late = replace(gone, now_s=SENT.deadline_s)
    assert advance_history(late, reconcile(late)).in_flight is None


@pytest.mark.covers("apply_review 19")
def test_a_bound_that_was_left_in_flink_is_withdrawn_as_soon_as_something_may_be_sent() -> None:
    half = replace(RUNS, requested=FOUR, running={"a": 4, "b": 3})
    held = replace(AUTO, is_held=True)
    late = replace(CASE, now_s=SENT.deadline_s, observed=half, history=replace(KNOWN, in_flight=SENT), limits=held)
    action = reconcile(late)
    assert (action.verb, action.reason) == (Verb.REFUSE, "not_filled")
    after = advance_history(late, action)
    assert (after.in_flight, after.unfilled) == (None, SENT)
    assert reconcile(replace(late, history=after)).reason == "on_hold"
    free = replace(late, history=after, limits=AUTO)
    back = reconcile(free)
    assert (back.verb, back.request.target) == (Verb.ROLL_BACK, {"a": 4, "b": 3})
    assert advance_history(free, back).unfilled is None
    filled = replace(free, observed=replace(half, running=FOUR))
    assert reconcile(filled).verb is not Verb.ROLL_BACK


def test_nothing_waits_for_a_time_that_a_wrong_clock_gave() -> None:
    ahead = NOW_S + 1e7
    history = replace(
        KNOWN, request_times_s=(ahead,), last_change_at_s=ahead, held_until_s=ahead,
        in_flight=replace(SENT, sent_at_s=ahead, deadline_s=ahead + 180), blocked=(BlockedTarget(SIX, ahead),),
    )  # fmt: skip
    result = bound_times(history, NOW_S, AUTO)
    assert (result.request_times_s, result.last_change_at_s) == ((NOW_S,), NOW_S)
    assert result.held_until_s == NOW_S + AUTO.foreign_change_hold_s
    assert result.in_flight.deadline_s == NOW_S + AUTO.confirm_timeout_s
    assert result.blocked[0].until_s == NOW_S + AUTO.block_s
    assert bound_times(replace(KNOWN, in_flight=SENT), NOW_S, AUTO) == replace(KNOWN, in_flight=SENT)
