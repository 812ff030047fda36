"""The controller's rules, one by one: what it waits for, sends, confirms, takes back and refuses."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from models.control.blackout import Blackout, is_blackout
from models.control.history import advance_history, end_refused_request
from models.control.limits import Limits, bound_target, combine_limits
from models.control.outcome import Measurements, judge_outcome
from models.control.reconcile import Case, OutcomeCheck, Verb, reconcile
from models.control.state import BlockedTarget, Intention, JobHistory, Mode, ObservedJob, Origin, Request

NOW_S = 1_000_000.0
TWO, FOUR, SIX = ({"a": n, "b": n} for n in (2, 4, 6))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory(job_id="j", known_requested=TWO)
AUTO = Limits(mode=Mode.AUTO)
WANTS_FOUR = Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600)
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)
CASE = Case(NOW_S, WANTS_FOUR, RUNS, KNOWN, AUTO)


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
        ({"observed": replace(RUNS, requested=SIX, running=SIX)}, "foreign_change"),
        ({"observed": replace(RUNS, other_autoscaler="the operator's autoscaler")}, "other_autoscaler"),
        ({"observed": replace(RUNS, state="FAILING", running={})}, "not_running"),
        ({"observed": replace(RUNS, free_slots=1)}, "no_free_slots"),
        ({"limits": replace(AUTO, mode=Mode.OFF)}, "mode_off"),
        ({"limits": replace(AUTO, is_held=True)}, "on_hold"),
        ({"limits": replace(AUTO, in_blackout=True)}, "blackout"),
        ({"limits": replace(AUTO, mode=Mode.APPROVE)}, "needs_approval"),
        ({"limits": replace(AUTO, rescales_per_hour=0)}, "rescales_per_hour"),
        ({"limits": replace(AUTO, rescales_per_day=0)}, "rescales_per_day"),
        ({"history": replace(KNOWN, held_until_s=NOW_S + 60)}, "held"),
        ({"history": replace(KNOWN, last_change_at_s=NOW_S - 10)}, "cooldown"),
        ({"history": replace(KNOWN, blocked=(BlockedTarget(FOUR, NOW_S + 1),))}, "blocked_target"),
        ({"history": replace(KNOWN, late_targets=(SIX,)), "observed": replace(RUNS, requested=SIX)}, "late_request"),
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
        assert FOUR in after.late_targets


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
    assert (after.in_flight, after.blocked) == (None, (BlockedTarget(FOUR, NOW_S + 60.0),))


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


def test_a_blackout_follows_the_wall_clock_of_its_zone() -> None:
    nights = Blackout("0 22 * * *", 8 * 3600, "Europe/Berlin")
    summer = [datetime(2026, 7, 1, hour, 30, tzinfo=UTC) for hour in (19, 20, 3, 4)]
    assert [is_blackout([nights], at) for at in summer] == [False, True, True, False]
    with pytest.raises(ValueError, match="is no cron expression"):
        Blackout("hello", 60)
    with pytest.raises(ValueError, match="between 0 and a week"):
        Blackout("0 22 * * *", 0)


BEFORE = Measurements(NOW_S, 1000.0, 1000.0, 0.1, 5.0, 0)
LATER_S = NOW_S + 900.0


@pytest.mark.parametrize(
    ("after", "is_worse"),
    [
        (Measurements(NOW_S + 100, 100.0, 1000.0, 0.9, 500.0, 3), None),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.1, 5.0, 0), False),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.1, 5.0, 2), True),
        (Measurements(LATER_S, 800.0, 1000.0, 0.1, 200.0, 0), True),
        (Measurements(LATER_S, 1000.0, 1000.0, 0.9, 200.0, 0), True),
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
