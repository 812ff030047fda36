"""How far a person's answer reaches: to which steps, to how many requests, and which of several counts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from include.utc import DAY_S, HOUR_S
from models.control.approval import StepApproval
from models.control.case import Case, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

NOW_S = 1_000_000.0


def at(count: int, other: int | None = None) -> dict[str, int]:
    return {"a": count, "b": count if other is None else other}


YES = StepApproval("shown", at(4), at(8), True, NOW_S - 60, NOW_S + HOUR_S, "ada", "1")
NO = replace(YES, is_approved=False, approval_id="2")
APPROVE = Limits(mode=Mode.APPROVE, approval_band=0.25, cooldown_s=0.0)


def case(now: dict[str, int], target: dict[str, int], *said: StepApproval, **changes: Any) -> Case:
    observed = ObservedJob("j", "RUNNING", now, now, free_slots=20)
    wanted = Intention(target, Origin.REACTIVE, "another step", "load rises", math.inf)
    history = JobHistory(job_id="j", known_requested=now, used_approvals=())
    made = Case(NOW_S, wanted, observed, history, replace(APPROVE, approvals=said))
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("now", "target", "is_covered"),
    [
        (at(4), at(8), True),
        (at(4), at(9), True),  # a quarter of eight slots
        (at(4), at(10), True),
        (at(4), at(11), False),
        (at(4), at(6), True),
        (at(4), at(5), False),
        (at(6), at(8), True),  # from elsewhere
        (at(7), at(8), False),
        (at(8), at(6), False),  # the other way
        (at(10), at(8), False),
        (at(4), at(8, 4), False),  # one vertex is as it was, further away than that
        (at(4), at(8, 7), True),
        (at(4), at(8, 3), False),  # one vertex goes the other way
        ({"a": 4}, {"a": 8}, False),  # of another graph
    ],
)
def test_an_answer_covers_steps_in_the_same_direction_within_a_band(
    now: dict[str, int], target: dict[str, int], is_covered: bool
) -> None:
    assert (reconcile(case(now, target, YES)).reason == "reactive") is is_covered
    assert (reconcile(case(now, target, NO)).reason == "denied") is is_covered
    exact = replace(APPROVE, approval_band=0.0, approvals=(YES,))
    is_same = (now, target) == (at(4), at(8))
    assert (reconcile(case(now, target, limits=exact)).reason == "reactive") is is_same


def test_a_fall_is_covered_by_a_yes_to_a_fall() -> None:
    fall = replace(YES, before=at(8), target=at(4))
    for target, is_covered in ((at(5), True), (at(3), True), (at(6), False), (at(2), False)):
        assert (reconcile(case(at(8), target, fall)).reason == "reactive") is is_covered
    assert reconcile(case(at(4), at(8), fall)).reason == "needs_approval"


def test_a_vertex_may_go_the_other_way_where_that_was_shown() -> None:
    shown = replace(YES, before=at(4), target=at(8, 3))
    assert reconcile(case(at(4), at(8, 3), shown)).reason == "reactive"
    assert reconcile(case(at(4), at(9, 3), shown)).reason == "reactive"


def test_a_vertex_that_was_shown_to_rise_may_stay_and_not_fall() -> None:
    shown = replace(YES, target=at(8, 5))
    assert reconcile(case(at(4), at(8, 4), shown)).reason == "reactive"
    assert reconcile(case(at(4), at(8, 3), shown)).reason == "needs_approval"


@pytest.mark.parametrize("ahead_s", [-900.0, 0.0, 900.0])
@pytest.mark.covers("harm yes-twice")
def test_one_yes_is_one_request_whatever_the_clock_of_who_gives_it(ahead_s: float) -> None:
    yes = replace(YES, at_s=NOW_S + ahead_s, until_s=NOW_S + ahead_s + HOUR_S)
    first = case(at(4), at(8), yes)
    action = reconcile(first)
    assert (action.verb, action.request.approvals) == (Verb.RESCALE, ("1",))
    history = advance_history(first, action)
    for after_s in (1.0, 300.0, 1200.0, -1200.0):  # once it was taken back, say
        again = replace(first, now_s=NOW_S + after_s, history=replace(history, in_flight=None, known_requested=at(4)))
        assert reconcile(again).reason == "needs_approval"
    other = replace(again.limits, approvals=(yes, replace(yes, approval_id="3")))
    assert reconcile(replace(again, now_s=NOW_S + 1, limits=other)).reason == "reactive"


def test_several_who_say_yes_to_one_step_allow_one_request() -> None:
    first = case(at(4), at(8), YES, replace(YES, by="bob", approval_id="3"))
    action = reconcile(first)
    history = advance_history(first, action)
    assert [one.approval_id for one in history.used_approvals] == ["1", "3"]
    again = replace(first, history=replace(history, in_flight=None, known_requested=at(4)))
    assert reconcile(again).reason == "needs_approval"


def test_what_is_used_up_stays_so_in_a_job_that_is_deployed_anew_and_with_a_clock_days_ahead() -> None:
    first = case(at(4), at(8), YES)
    history = replace(advance_history(first, reconcile(first)), in_flight=None, known_requested=at(4))
    again = replace(first, history=history, observed=replace(first.observed, job_id="k"))
    assert advance_history(again, reconcile(again)).used_approvals == history.used_approvals
    ahead = case(at(4), at(8), replace(YES, approval_id="5", at_s=NOW_S + 9 * DAY_S, until_s=NOW_S + 10 * DAY_S))
    ahead = replace(ahead, now_s=NOW_S + 9.5 * DAY_S, history=history)
    action = reconcile(ahead)
    assert action.request.approvals == ("5",)
    assert "1" in [one.approval_id for one in advance_history(ahead, action).used_approvals]


def test_in_a_log_of_before_answers_had_an_id_one_before_the_last_request_is_used_up() -> None:
    old = JobHistory(job_id="j", known_requested=at(4), request_times_s=(NOW_S - 50,))
    assert reconcile(case(at(4), at(8), YES, history=old)).reason == "needs_approval"
    later = replace(YES, at_s=NOW_S - 40, approval_id="3")
    now = case(at(4), at(8), YES, later, history=old)
    action = reconcile(now)
    assert action.request.approvals == ("3",)
    after = replace(advance_history(now, action), in_flight=None, known_requested=at(4))
    assert {one.approval_id for one in after.used_approvals} == {"1", "3"}
    assert reconcile(replace(now, history=after)).reason == "needs_approval"


@pytest.mark.parametrize(
    ("at_s", "until_s", "counts"),
    [
        (NOW_S - 60, NOW_S + 1, True),
        (NOW_S - 60, NOW_S, False),
        (NOW_S - 60, math.inf, False),
        (NOW_S - 60, math.nan, False),
        (math.nan, NOW_S + 60, False),
        (NOW_S - 60, NOW_S - 60 + 366 * DAY_S, True),
        (NOW_S - 60, NOW_S + 366 * DAY_S, False),
        (NOW_S + HOUR_S, NOW_S + 2 * HOUR_S, True),
        (NOW_S + HOUR_S + 1, NOW_S + 2 * HOUR_S, False),
        (-math.inf, NOW_S + 60, False),
    ],
)
def test_a_yes_with_times_that_cannot_be_is_none(at_s: float, until_s: float, counts: bool) -> None:
    reported = replace(YES, at_s=at_s, until_s=until_s)
    assert reconcile(case(at(4), at(8), reported)).reason == ("reactive" if counts else "needs_approval")


@pytest.mark.parametrize(("until_s", "stands"), [(NOW_S + 1, True), (NOW_S, False), (math.inf, True), (math.nan, True)])
def test_a_no_stands_until_its_time_whatever_is_said_later(until_s: float, stands: bool) -> None:
    later = [replace(YES, at_s=NOW_S + n, by=by, approval_id=by) for n, by in enumerate(("ada", "bob", "eve"))]
    no = replace(NO, until_s=until_s)
    for reported in ((no, *later), (*later, no)):
        action = reconcile(case(at(4), at(8), *reported))
        assert action.reason == ("denied" if stands else "reactive")


def test_a_no_is_to_the_step_whatever_it_means_by_now() -> None:
    wanted = Intention(at(20), Origin.PLAN, "shown", "load rises", math.inf)
    now = case(at(4), at(20), NO)
    assert reconcile(replace(now, desired=wanted)).reason == "denied"
    assert reconcile(now).reason == "needs_approval"


def test_a_step_that_nobody_answered_denies_that_step_alone() -> None:
    nobody = replace(NO, by="")
    assert reconcile(case(at(4), at(8), nobody)).reason == "denied"
    assert reconcile(case(at(4), at(9), nobody)).reason == "needs_approval"


def test_a_yes_that_is_used_up_allows_no_further_step_of_its_band() -> None:
    first = case(at(4), at(8), YES)
    history = advance_history(first, reconcile(first))
    at_eight = case(at(8), at(9), YES, history=replace(history, in_flight=None, known_requested=at(8)))
    assert reconcile(at_eight).reason == "needs_approval"


def test_sixty_four_used_answers_are_never_forgotten_and_more_while_they_would_count() -> None:
    now = case(at(4), at(8))
    for number in range(70):
        until_s = NOW_S + (HOUR_S if number else 9 * HOUR_S)
        reported = replace(YES, approval_id=str(number), at_s=NOW_S + number * 60, until_s=until_s + number * 60)
        history = replace(now.history, in_flight=None, known_requested=at(4), request_times_s=())
        now = replace(
            now, now_s=NOW_S + number * 60, history=history, limits=replace(now.limits, approvals=(reported,))
        )
        now = replace(now, history=advance_history(now, reconcile(now)))
        now = replace(now, history=replace(now.history, blocked=()))
    used = [one.approval_id for one in now.history.used_approvals]
    assert used == ["0", *map(str, range(6, 70))]
