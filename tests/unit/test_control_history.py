"""The history after each decision in full, limits of several levels, outcomes and bounds at their edges."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from models.control.approval import StepApproval
from models.control.arrivals import has_arrived
from models.control.blackout import BlackoutPeriod
from models.control.bounds import bound_target
from models.control.case import Action, Case, OutcomeCheck, Verb
from models.control.clock_steps import bound_times
from models.control.history import advance_history, end_refused_request, end_unsent_request, note_seen
from models.control.limits import Limits, combine_limits
from models.control.outcome import Measurements, judge_outcome
from models.control.reconcile import reconcile
from models.control.request_times import RequestTimes
from models.control.state import (
    BlockedTarget,
    Intention,
    JobHistory,
    LateRequest,
    Mode,
    ObservedJob,
    Origin,
    Request,
    UsedApproval,
)

NOW_S = 1_000_000.0
ONE, TWO, FOUR, SIX = ({"a": n, "b": n} for n in (1, 2, 4, 6))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8, submitted_at_s=500.0, lower_bounds={"a": 2, "b": 1})
AUTO = Limits(mode=Mode.AUTO, foreign_change_hold_s=3600, block_s=7200)
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)
EARLIER = LateRequest(ONE, NOW_S + 600)
GIVEN_UP = LateRequest(FOUR, SENT.sent_at_s + 960)
USED = UsedApproval("used", NOW_S + 60)
WANTS_FOUR = Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600)
# Every field has something in it, so that a decision shows which it keeps.
FULL = JobHistory(
    job_id="j",
    in_flight=SENT,
    known_requested=TWO,
    late_requests=(EARLIER,),
    request_times_s=(NOW_S - 90_000, NOW_S - 60),
    last_change_at_s=NOW_S - 5000,
    last_good=ONE,
    to_judge=SENT,
    confirmed_at_s=NOW_S - 5000,
    blocked=(BlockedTarget(ONE, NOW_S - 1), BlockedTarget(SIX, NOW_S + 60)),
    held_until_s=NOW_S - 9,
    held_because="somebody else changed the job",
    unfilled=replace(SENT, step_id="old"),
    submitted_at_s=500.0,
    lost=SIX,
    known_lower={"a": 2},
    used_approvals=(USED,),
)
CASE = Case(NOW_S, WANTS_FOUR, RUNS, FULL, AUTO)


def after(reason: str, verb: Verb = Verb.REFUSE, case: Case = CASE, request: Request | None = None) -> JobHistory:
    return advance_history(case, Action(verb, reason, "", request))


def test_a_request_is_in_flight_before_it_leaves_and_the_state_before_it_is_good() -> None:
    new = replace(SENT, step_id="next", running_before={"a": 2, "b": 1})
    expected = replace(
        FULL,
        in_flight=new,
        request_times_s=(NOW_S - 60, NOW_S),  # those of the last day
        to_judge=None,
        last_good=TWO,  # the bounds in force, though they were not filled
        last_sent=new,
    )
    assert after("plan", Verb.RESCALE, request=new) == expected
    nothing_ran = replace(new, running_before={})
    assert after("plan", Verb.RESCALE, request=nothing_ran) == replace(
        expected, in_flight=nothing_ran, last_sent=nothing_ran, last_good=ONE
    )
    dry = Action(Verb.RESCALE, "plan", "", new, is_dry_run=True)
    assert advance_history(CASE, dry) == FULL


def test_a_rollback_blocks_what_it_takes_back() -> None:
    back = replace(SENT, step_id="step-rollback", target=TWO, before=FOUR, is_rollback=True)
    assert after("worse_than_before", Verb.ROLL_BACK, request=back) == replace(
        FULL,
        in_flight=back,
        request_times_s=(NOW_S - 60, NOW_S),
        to_judge=None,
        unfilled=None,
        blocked=(BlockedTarget(SIX, NOW_S + 60), BlockedTarget(FOUR, NOW_S + 7200)),
    )


@pytest.mark.parametrize("is_rollback", [False, True])
def test_a_confirmed_request_is_what_is_in_force_and_is_judged_unless_it_was_a_rollback(is_rollback: bool) -> None:
    request = replace(SENT, is_rollback=is_rollback)
    assert after("runs_as_requested", Verb.CONFIRM, request=request) == replace(
        FULL,
        in_flight=None,
        known_requested=FOUR,
        last_change_at_s=NOW_S,
        unfilled=None,
        to_judge=None if is_rollback else request,
        confirmed_at_s=NOW_S,
        lost=None,
        times_of_requests=(RequestTimes(),),
    )


def test_a_foreign_change_is_accepted_and_held() -> None:
    case = replace(CASE, observed=replace(RUNS, requested=SIX))
    accepted = replace(
        FULL,
        in_flight=None,
        known_requested=SIX,
        known_lower=RUNS.lower_bounds,
        late_requests=(EARLIER, GIVEN_UP),
        last_change_at_s=NOW_S,
        to_judge=None,
        unfilled=None,
        lost=None,
    )
    followed = replace(SENT, before=SIX)  # an older request has arrived; this one may still do so
    late = replace(accepted, in_flight=followed, late_requests=(EARLIER,))
    assert after("late_request", Verb.WAIT, case) == late
    had = replace(case, history=replace(FULL, in_flight=replace(SENT, arrived_at_s=NOW_S - 9)))
    assert after("late_request", Verb.WAIT, had) == replace(accepted, late_requests=(EARLIER,))
    ended = replace(case, history=replace(FULL, in_flight=replace(SENT, deadline_s=NOW_S)))
    assert after("late_request", Verb.WAIT, ended) == accepted
    held = replace(accepted, held_until_s=NOW_S + 3600, held_because="somebody else changed the job")
    assert after("foreign_change", case=case) == held
    longer = replace(
        case, history=replace(FULL, held_until_s=NOW_S + 3599), limits=replace(AUTO, foreign_change_hold_s=60)
    )
    assert after("foreign_change", case=longer).held_until_s == NOW_S + 60  # none lies further ahead than that
    idle = replace(case, history=replace(FULL, in_flight=None))
    assert after("late_request", Verb.WAIT, idle).late_requests == (EARLIER,)


@pytest.mark.parametrize("is_rollback", [False, True])
def test_a_request_that_was_not_filled_is_left_and_held(is_rollback: bool) -> None:
    request = replace(SENT, is_rollback=is_rollback)
    case = replace(CASE, history=replace(FULL, in_flight=request), observed=replace(RUNS, requested=FOUR))
    assert after("not_filled", case=case) == replace(
        FULL,
        in_flight=None,
        known_requested=FOUR,  # it has arrived, so it will not arrive late
        known_lower=RUNS.lower_bounds,
        last_change_at_s=NOW_S,
        to_judge=None,
        lost=None,
        held_until_s=NOW_S + 3600,
        held_because="Flink did not fill a request",
        unfilled=None if is_rollback else request,
        bad_steps_s=() if is_rollback else (NOW_S,),
    )


def test_a_lost_request_may_still_arrive() -> None:
    expected = replace(FULL, in_flight=None, late_requests=(EARLIER, GIVEN_UP))
    assert after("not_received") == expected
    idle = replace(FULL, in_flight=None)
    assert after("not_received", case=replace(CASE, history=idle)) == idle


def test_a_late_request_arrives_within_its_time_and_once() -> None:
    """Later, or again, the same numbers are somebody else's."""
    late = replace(CASE, observed=replace(RUNS, requested=FOUR), history=replace(FULL, in_flight=None, unfilled=None))
    known = replace(late.history, late_requests=(EARLIER, GIVEN_UP))
    for now_s, reason in ((GIVEN_UP.until_s - 1, "late_request"), (GIVEN_UP.until_s, "foreign_change")):
        assert reconcile(replace(late, now_s=now_s, history=known)).reason == reason
    arrived = advance_history(replace(late, history=known), Action(Verb.WAIT, "late_request"))
    assert (arrived.late_requests, arrived.known_requested) == ((EARLIER,), FOUR)
    remaining = replace(late, observed=RUNS, history=arrived)
    back = advance_history(remaining, reconcile(remaining))  # somebody takes it away again
    again = replace(late, history=replace(back, held_until_s=0.0))
    assert reconcile(again).reason == "foreign_change"


def test_a_request_that_was_seen_to_arrive_cannot_do_so_late() -> None:
    for request in (replace(SENT, arrived_at_s=NOW_S - 30), SENT):
        for observed in (replace(RUNS, requested=FOUR), replace(RUNS, running={"a": 3, "b": 2})):
            given_up = replace(CASE, history=replace(FULL, in_flight=request), observed=observed)
            assert after("foreign_change", case=given_up).late_requests == (EARLIER,)
    old = replace(FULL, late_requests=(LateRequest(SIX, NOW_S), EARLIER))
    assert end_unsent_request(replace(CASE, history=old)).late_requests == (EARLIER,)


def test_what_is_seen_of_a_request_in_flight_is_kept() -> None:
    observed = replace(CASE, observed=replace(RUNS, requested=FOUR))
    assert after("in_flight", Verb.WAIT, observed).in_flight == replace(SENT, arrived_at_s=NOW_S)
    assert after("in_flight", Verb.WAIT).in_flight == SENT
    again = replace(observed, now_s=NOW_S + 9, history=after("in_flight", Verb.WAIT, observed))
    assert after("in_flight", Verb.WAIT, again).in_flight == replace(SENT, arrived_at_s=NOW_S)
    tried_before = replace(FULL, late_requests=(EARLIER, GIVEN_UP))
    seen = note_seen(tried_before, observed.observed, NOW_S)
    assert (seen.in_flight, seen.late_requests) == (replace(SENT, arrived_at_s=NOW_S), (EARLIER,))
    idle = replace(FULL, in_flight=None)
    assert note_seen(idle, RUNS, NOW_S) == idle
    other = replace(RUNS, job_id="k", requested=FOUR)
    assert note_seen(FULL, other, NOW_S) == FULL


def test_a_bound_that_is_filled_after_all_is_not_withdrawn_later() -> None:
    filled = replace(CASE, observed=replace(RUNS, requested=FOUR, running=FOUR))
    assert end_unsent_request(filled).unfilled is None


@pytest.mark.parametrize(("now_s", "is_kept"), [(SENT.deadline_s - 1, True), (SENT.deadline_s, False)])
def test_the_request_of_a_job_that_is_gone_ends_at_its_deadline(now_s: float, is_kept: bool) -> None:
    case = replace(CASE, now_s=now_s)
    case = replace(case, observed=ObservedJob(None, "", {}, None))
    gone = replace(FULL, in_flight=None, late_requests=(EARLIER, GIVEN_UP))
    assert after("unknown_job", case=case) == (FULL if is_kept else gone)
    had = replace(case, history=replace(FULL, in_flight=replace(SENT, arrived_at_s=NOW_S - 9)))
    if not is_kept:  # should the job come back
        assert after("unknown_job", case=had).known_requested == FOUR
    idle = replace(FULL, in_flight=None)
    assert after("unknown_job", case=replace(case, history=idle)) == idle


TAKEN_OVER = JobHistory(
    job_id="k",
    known_requested=TWO,
    request_times_s=FULL.request_times_s,
    last_change_at_s=NOW_S - 5000,
    held_until_s=NOW_S - 9,
    held_because="somebody else changed the job",
    submitted_at_s=900.0,
    known_lower=RUNS.lower_bounds,
    used_approvals=(USED,),
)
ANEW = {"job_id": "k", "submitted_at_s": 900.0}


@pytest.mark.parametrize(
    ("arrived_at_s", "requested", "is_held"),
    [
        (None, TWO, False),  # what was in force
        (None, FOUR, True),  # a request to another job id, of which nobody knows that it arrived
        (NOW_S - 30, FOUR, False),  # it had arrived, and was in force
        (NOW_S - 30, TWO, True),  # and before that is another parallelism
        (None, SIX, True),
        (None, None, True),
    ],
)
def test_a_job_deployed_anew_keeps_its_pace_and_its_hold(
    arrived_at_s: float | None, requested: dict[str, int] | None, is_held: bool
) -> None:
    known = replace(FULL, in_flight=replace(SENT, arrived_at_s=arrived_at_s))
    case = replace(CASE, history=known, observed=replace(RUNS, requested=requested, **ANEW))
    expected = replace(TAKEN_OVER, known_requested=requested)
    if is_held:
        because = "the job was deployed anew, with another parallelism"
        expected = replace(expected, held_until_s=NOW_S + 3600, held_because=because)
    assert after("new_job_id", Verb.WAIT, case) == expected


@pytest.mark.parametrize(("requested", "is_held"), [(SIX, False), (TWO, True)])
def test_in_force_is_what_a_request_in_flight_is_to_change_and_not_what_was_confirmed_before(
    requested: dict[str, int], is_held: bool
) -> None:
    """A rise to six was never filled; the rollback to two, which was confirmed before it, is lost."""
    rollback = replace(SENT, target=TWO, before=SIX, is_rollback=True)
    known = replace(FULL, in_flight=rollback, known_requested=TWO)
    case = replace(CASE, history=known, observed=replace(RUNS, requested=requested, **ANEW))
    assert (after("new_job_id", Verb.WAIT, case).held_until_s > NOW_S) == is_held


def test_a_first_job_is_not_held_and_one_that_lost_its_map_neither() -> None:
    first = replace(CASE, history=JobHistory(), observed=replace(RUNS, requested=SIX, **ANEW))
    lower = RUNS.lower_bounds
    assert after("new_job_id", Verb.WAIT, first) == JobHistory(
        "k", known_requested=SIX, submitted_at_s=900.0, known_lower=lower
    )
    lost = replace(CASE, observed=replace(RUNS, requested=ONE, declared=FOUR, **ANEW))
    assert after("new_job_id", Verb.WAIT, lost) == replace(TAKEN_OVER, known_requested=ONE, lost=FOUR)


def test_a_decision_that_changes_nothing_changes_nothing_and_a_good_outcome_ends_the_judgement() -> None:
    for reason in ("as_desired", "held", "cooldown"):
        assert after(reason) == FULL
    fine = replace(CASE, outcome=OutcomeCheck(False))
    assert after("as_desired", case=fine) == end_unsent_request(fine) == replace(FULL, to_judge=None)
    assert end_unsent_request(replace(CASE, outcome=OutcomeCheck(True))) == FULL


def test_a_refused_request_ends_and_its_target_is_blocked() -> None:
    refused = BlockedTarget(FOUR, NOW_S + 600, because="Flink has refused it lately")
    assert end_refused_request(FULL, NOW_S, 600.0) == replace(
        FULL,
        in_flight=None,
        blocked=(BlockedTarget(SIX, NOW_S + 60), refused),
        bad_steps_s=(NOW_S,),
    )
    idle = replace(FULL, in_flight=None)
    assert end_refused_request(idle, NOW_S, 600.0) == idle
    at_its_end = replace(FULL, blocked=(BlockedTarget(SIX, NOW_S),))
    assert end_refused_request(at_its_end, NOW_S, 600.0).blocked == (refused,)


def test_times_ahead_of_the_clock_are_brought_back_and_others_stay() -> None:
    assert bound_times(FULL, NOW_S, AUTO) == FULL
    early_s = NOW_S - 100_000
    ahead = replace(FULL, in_flight=replace(SENT, arrived_at_s=NOW_S))
    assert bound_times(ahead, early_s, AUTO) == replace(
        FULL,
        in_flight=replace(SENT, sent_at_s=early_s, deadline_s=early_s + 180, arrived_at_s=early_s),
        request_times_s=(early_s, early_s),
        last_change_at_s=early_s,
        confirmed_at_s=early_s,
        blocked=(BlockedTarget(ONE, early_s + 7200), BlockedTarget(SIX, early_s + 7200)),
        held_until_s=early_s + 3600,
        late_requests=(LateRequest(ONE, early_s + 960),),
    )
    assert bound_times(JobHistory(), early_s, AUTO) == JobHistory()
    now = replace(FULL, in_flight=replace(SENT, sent_at_s=NOW_S, deadline_s=NOW_S + 5))
    assert bound_times(now, NOW_S, AUTO) == now


YES = StepApproval("step", TWO, FOUR, True, NOW_S, NOW_S + 60, "ada")
STRICT: dict[str, tuple[Any, Any]] = {  # stricter, looser
    "mode": (Mode.DRY_RUN, Mode.AUTO),
    "slots_min": (4, 2),
    "slots_max": (16, 32),
    "step_up_max_slots": (1, 2),
    "step_down_max_slots": (1, 2),
    "step_up_max_share": (0.1, 0.2),
    "step_down_max_share": (0.1, 0.2),
    "rescales_per_hour": (1, 2),
    "rescales_per_day": (1, 2),
    "late_after_s": (30.0, 60.0),
    "cooldown_s": (600.0, 300.0),
    "confirm_timeout_s": (100.0, 200.0),
    "slots_wait_s": (100.0, 200.0),
    "foreign_change_hold_s": (600.0, 300.0),
    "block_s": (600.0, 300.0),
    "in_blackout": (True, False),
    "has_blackouts": (True, False),
    "allows_falls": (False, True),
    "is_held": (True, False),
    "settings_changed": (True, False),
    "cluster_slots_max": (64, 128),
    "concurrent_rescales": (1, 2),
    "concurrent_share": (0.1, 0.2),
    "bad_steps_max": (3, 4),
    "approval_band": (0.0, 0.5),
}
JOINED = {
    "pin",
    "pin_all",
    "approvals",
    "mode_reason",
    "blackout_reason",
    "hold_reason",
    "schedule_reason",
    "neighbours",
}
OF_THE_JOB = {"guards", "lifted_blocks", "undo"}  # not of a level
OF_VERTICES = {"operator_min", "operator_max", "left_alone"}


def test_of_each_limit_the_strictest_holds_whichever_level_has_it() -> None:
    assert {field.name for field in fields(Limits)} == set(STRICT) | JOINED | OF_THE_JOB | OF_VERTICES
    strict = Limits(**{name: values[0] for name, values in STRICT.items()})
    loose = Limits(**{name: values[1] for name, values in STRICT.items()})
    assert combine_limits([strict, loose]) == combine_limits([loose, strict]) == strict
    assert combine_limits([loose, loose, loose]) == loose
    assert combine_limits([Limits(mode=mode) for mode in reversed(Mode)]).mode is Mode.OFF
    assert combine_limits([replace(loose, slots_min=32), loose]).slots_min == 32


def test_what_is_said_of_vertices_at_several_levels_holds_together() -> None:
    one = Limits(operator_min={"a": 2}, operator_max={"a": 8, "b": 9}, left_alone=("c",))
    other = Limits(operator_min={"a": 3, "b": 1}, operator_max={"a": 9}, left_alone=("c", "d"))
    both = combine_limits([one, other])
    assert (both.operator_min, both.operator_max) == ({"a": 3, "b": 1}, {"a": 8, "b": 9})
    assert both.left_alone == ("c", "d")


def test_pins_approvals_and_reasons_of_several_levels() -> None:
    no = replace(YES, is_approved=False)
    one = Limits(pin=TWO, pin_all=2, approvals=(YES,), mode_reason="m", blackout_reason="b", hold_reason="h")
    other = Limits(pin=FOUR, pin_all=4, approvals=(no,), mode_reason="m", blackout_reason="c", hold_reason="i")
    one, other = (replace(level, schedule_reason=why, neighbours=(why,)) for level, why in ((one, "s"), (other, "t")))
    both = combine_limits([one, other])
    assert (both.schedule_reason, both.neighbours) == ("s; t", ("s", "t"))
    assert (both.pin, both.pin_all, both.approvals) == (FOUR, 4, (YES, no))
    assert (both.mode_reason, both.blackout_reason, both.hold_reason) == ("m", "b; c", "h; i")
    for levels in ([one, Limits()], [Limits(), one]):
        assert combine_limits(levels) == one
    with pytest.raises(ValueError, match=r"^limits need at least one level$"):
        combine_limits([])
    with pytest.raises(ValueError, match=r"^slots_min = 9 is above slots_max = 8$"):
        combine_limits([Limits(slots_min=9), Limits(slots_max=8)])


BEFORE = Measurements(NOW_S, 1000.0, 1000.0, 0.6, 70.0, 3)
CAUGHT_UP_S = NOW_S + 300 + 120  # settled, and two minutes measured
LATE = Measurements(CAUGHT_UP_S, 800.0, 1000.0, 0.1, 200.0, 3)
FINE = OutcomeCheck(False, "the rescale did no harm")


@pytest.mark.parametrize(
    ("change", "is_worse"),
    [
        ({}, True),
        ({"until_s": CAUGHT_UP_S - 1}, None),
        ({"lag_s": 70.0}, False),  # as long as before
        ({"lag_s": 70.1}, True),
        ({"throughput_per_s": 980.0}, False),  # the backlog stands still
        ({"throughput_per_s": 979.0}, True),
        ({"throughput_per_s": 1000.0, "backpressured_share": 1.0}, False),
        ({"throughput_per_s": 899.0, "arriving_per_s": 899.0}, True),
        ({"throughput_per_s": 900.0, "arriving_per_s": 900.0}, False),
        ({"throughput_per_s": 899.0, "arriving_per_s": 800.0}, None),  # it is worked off
        ({"arriving_per_s": 1111.0}, True),
        ({"arriving_per_s": 1112.0}, False),
        ({"arriving_per_s": math.nan}, True),
        ({"lag_s": 0.0, "throughput_per_s": 1000.0, "restarts": 4}, False),
    ],
)
def test_worse_is_later_with_less_though_no_more_arrives(change: dict[str, Any], is_worse: bool | None) -> None:
    result = judge_outcome(SENT, NOW_S, BEFORE, replace(LATE, **change))
    assert result.is_worse is is_worse
    if is_worse is not True:
        assert result == (FINE if is_worse is False else OutcomeCheck())


def test_what_is_worse_is_said_with_its_figures() -> None:
    assert judge_outcome(SENT, NOW_S, BEFORE, LATE) == OutcomeCheck(
        True,
        "records wait for 200 s (70 s before) at 800/s (1000/s before), the backlog grows by 200/s,"
        " backpressured 10% of the time",
    )
    unknown = judge_outcome(SENT, NOW_S, BEFORE, replace(LATE, arriving_per_s=math.nan)).detail
    assert unknown == "records wait for 200 s (70 s before) at 800/s (1000/s before), backpressured 10% of the time"
    failed = judge_outcome(SENT, NOW_S, BEFORE, replace(LATE, lag_s=0.0, restarts=5))
    assert failed == OutcomeCheck(True, "the job has failed 2 times since the rescale", is_failing=True)


def test_a_wait_within_what_is_allowed_is_no_harm() -> None:
    calm = replace(BEFORE, lag_s=1.0, backpressured_share=0.1)
    for lag_s, is_worse in ((60.0, False), (61.0, True)):
        assert judge_outcome(SENT, NOW_S, calm, replace(LATE, lag_s=lag_s)).is_worse is is_worse
    assert judge_outcome(SENT, NOW_S, calm, replace(LATE, lag_s=61.0), late_after_s=100.0) == FINE


def test_without_anything_to_compare_nothing_is_judged() -> None:
    whole = (SENT, NOW_S, BEFORE, LATE)
    for missing in range(4):
        given: list[Any] = [None if place == missing else value for place, value in enumerate(whole)]
        assert judge_outcome(*given) == OutcomeCheck()


def bound(wanted: dict[str, int], now: dict[str, int], groups: dict[str, str] | None = None, **limits: Any) -> Any:
    most = limits.pop("most", {})
    observed = ObservedJob("j", "RUNNING", now, now, most, groups or {}, free_slots=8)
    return bound_target(wanted, observed, replace(AUTO, **limits))


@pytest.mark.parametrize(
    ("wanted", "limits", "bounded"),
    [
        ({"a": 9, "b": 9}, {"step_up_max_share": 0.5}, {"a": 6, "b": 6}),
        ({"a": 9, "b": 9}, {"step_up_max_share": 0.1}, {"a": 5, "b": 5}),  # a share allows one slot at least
        ({"a": 9, "b": 9}, {"step_up_max_share": 0.0}, FOUR),
        ({"a": 9, "b": 9}, {"step_up_max_share": 0.5, "step_up_max_slots": 1}, {"a": 5, "b": 5}),
        (ONE, {"step_down_max_share": 0.5}, TWO),
        (ONE, {"step_down_max_share": 0.0}, FOUR),
        (ONE, {"step_down_max_slots": 2}, TWO),
        ({"a": 0, "b": 0}, {}, ONE),
        ({"a": 9, "b": 9}, {"most": {"a": 5}}, {"a": 5, "b": 9}),
        ({"a": 9, "b": 2}, {"slots_max": 6}, {"a": 6, "b": 2}),
        (ONE, {"slots_min": 3}, {"a": 3, "b": 3}),
        (ONE, {"slots_min": 3, "most": {"a": 2}}, {"a": 2, "b": 3}),
        (ONE, {"slots_min": 3, "most": {"a": 2, "b": 2}}, TWO),  # no more is possible
        (ONE, {"slots_min": 9, "step_up_max_slots": 1}, {"a": 5, "b": 5}),
        (ONE, {"allows_falls": False}, ONE),  # refused by its own rule later
        ({"a": 5, "b": 1}, {"allows_falls": False}, {"a": 5, "b": 4}),
        ({"a": 4, "b": 1}, {"allows_falls": False}, FOUR),
        (ONE, {"slots_max": 2, "step_down_max_slots": 1}, {"a": 3, "b": 3}),  # brought inside in steps
        (
            {"a": 3, "b": 3},
            {"pin": {"a": 1}, "slots_min": 6, "most": {"a": 128}},
            {"a": 4, "b": 6},
        ),  # no further than where it is
        ({"a": 1, "b": 1}, {"pin": {"a": 2}, "slots_min": 7, "most": {"a": 3}}, {"a": 3, "b": 7}),
        ({"c": 7}, {"step_up_max_slots": 2}, {"c": 6}),  # unknown until now: bounded in slots alone
    ],
)
def test_a_target_is_the_nearest_that_the_limits_allow(
    wanted: dict[str, int], limits: dict[str, Any], bounded: dict[str, int]
) -> None:
    assert bound(wanted, FOUR, **limits) == bounded


def test_slots_of_groups_are_raised_one_at_a_time_the_largest_first() -> None:
    groups = {"b": "own"}
    assert bound(ONE, ONE, groups, slots_min=5) == {"a": 4, "b": 1}  # of equal ones the first by name
    assert bound({"a": 1, "b": 2}, ONE, groups, slots_min=5) == {"a": 1, "b": 4}
    assert bound({"a": 2, "b": 1}, ONE, groups, slots_min=5) == {"a": 4, "b": 1}
    assert bound({"a": 2, "b": 1}, ONE, groups, slots_min=5, most={"a": 3}) == {"a": 3, "b": 2}
    assert bound({"a": 3, "b": 3}, ONE, groups, slots_max=5) == {"a": 2, "b": 2}
    three = {"a": 2, "c": 1, "b": 1}
    assert bound(three, three, groups, slots_min=4, most={"a": 2}) == {"a": 2, "c": 3, "b": 1}  # in place of a


def test_a_pinned_vertex_that_neither_runs_nor_was_asked_for_is_not_raised() -> None:
    wanted, most = {**FOUR, "c": 1}, {"a": 4, "b": 4, "c": 128}
    assert bound(wanted, FOUR, {"c": "own"}, pin={"c": 1}, slots_min=6, most=most) == wanted
    assert bound(wanted, FOUR, {"c": "own"}, pin={"c": 2}, slots_min=9, most=most) == {**FOUR, "c": 2}


def test_what_runs_counts_before_what_was_asked_for() -> None:
    observed = ObservedJob("j", "RUNNING", {"a": 2}, FOUR, free_slots=8)
    assert bound_target(SIX, observed, replace(AUTO, step_up_max_slots=1)) == {"a": 3, "b": 3}
    finished = replace(observed, running={"a": 4})  # b has finished: it goes by what was asked for
    assert bound_target(ONE, finished, replace(AUTO, step_down_max_slots=1)) == {"a": 3, "b": 3}


def test_blackouts_and_what_is_none() -> None:
    noon = BlackoutPeriod("0 12 * * *", 3600)
    times = [datetime(2026, 11, 20, 11, 59, 59, tzinfo=UTC), datetime(2026, 11, 20, 12, tzinfo=UTC)]
    times += [datetime(2026, 11, 20, 12, 59, 59, tzinfo=UTC), datetime(2026, 11, 20, 13, tzinfo=UTC)]
    assert [noon.covers(at) for at in times] == [False, True, True, False]
    assert BlackoutPeriod("0 0 * * 1", 7 * 86_400).covers(times[0])  # a week is the longest
    with pytest.raises(ValueError, match=r"^blackout: 'hello' is no cron expression; write 0 8 \* \* 1-5, say$"):
        BlackoutPeriod("hello", 60)
    for duration_s in (0, -1, 7 * 86_400 + 1):
        with pytest.raises(ValueError, match=f"^blackout: duration_s = {duration_s:g} must lie between 0 and a week$"):
            BlackoutPeriod("0 22 * * *", duration_s)
    with pytest.raises(ValueError, match=r"^blackout: '0 0 \* \* \*' in 'Mars/Olympus' has no times: "):
        BlackoutPeriod("0 0 * * *", 60, "Mars/Olympus")


def test_the_first_rule_with_an_answer_gives_it() -> None:
    """A request in flight comes before a hold, a hold before an objection, an objection before the pace."""
    held = replace(AUTO, is_held=True, in_blackout=True)
    doubted = replace(WANTS_FOUR, objection="stale_plan")
    known = replace(FULL, in_flight=None, unfilled=None, lost=None, to_judge=None)
    case = replace(CASE, limits=held, desired=doubted)
    assert reconcile(case).reason == "in_flight"
    assert reconcile(replace(case, history=known)).reason == "on_hold"
    assert reconcile(replace(case, history=known, limits=replace(held, is_held=False))).reason == "stale_plan"
    paced = replace(case, history=known, limits=replace(held, is_held=False), desired=WANTS_FOUR)
    assert reconcile(paced).reason == "blackout"


def test_a_resource_that_holds_the_target_shows_that_its_request_has_arrived() -> None:
    assert has_arrived(SENT, replace(RUNS, declared=FOUR))
    assert not has_arrived(SENT, replace(RUNS, declared=TWO))
    assert not has_arrived(SENT, RUNS)


def test_a_job_has_started_again_only_where_both_times_are_known_and_differ() -> None:
    known = replace(SENT, running_since_s=500.0)
    assert has_arrived(known, replace(RUNS, running_since_s=700.0))
    assert not has_arrived(known, replace(RUNS, running_since_s=500.0))
    assert not has_arrived(known, replace(RUNS, running_since_s=None))
    assert not has_arrived(SENT, replace(RUNS, running_since_s=700.0))
    assert not has_arrived(known, replace(RUNS, running={}, running_since_s=700.0))  # not all of it runs yet
