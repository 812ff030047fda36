"""A bound that Flink could not fill once is forgotten when another request is in force."""

from __future__ import annotations

from models.control.case import Case, OutcomeCheck, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import JobHistory, Mode, ObservedJob, Request

NOW_S = 1_000_000.0
TWO, FOUR, SIX = ({"a": n, "b": n} for n in (2, 4, 6))
UNFILLED = Request("old", "j", SIX, TWO, TWO, NOW_S - 900, NOW_S - 720)
SENT = Request("new", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)
AT_FOUR = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)


def case_of(history: JobHistory, outcome: OutcomeCheck) -> Case:
    return Case(NOW_S, None, AT_FOUR, history, Limits(mode=Mode.AUTO), outcome)


def test_a_confirmed_request_ends_an_old_bound() -> None:
    case = case_of(JobHistory(job_id="j", known_requested=TWO, unfilled=UNFILLED, in_flight=SENT), OutcomeCheck())
    action = reconcile(case)
    assert action.verb is Verb.CONFIRM
    assert advance_history(case, action).unfilled is None


def test_what_is_taken_back_is_blocked_and_not_an_old_bound() -> None:
    history = JobHistory(job_id="j", known_requested=FOUR, unfilled=UNFILLED, to_judge=SENT, last_good=TWO)
    case = case_of(history, OutcomeCheck(is_worse=True, detail="slower than before"))
    action = reconcile(case)
    assert (action.verb, action.request.target) == (Verb.ROLL_BACK, TWO)
    after = advance_history(case, action)
    assert [dict(blocked.parallelism) for blocked in after.blocked] == [FOUR]
    assert after.unfilled is None


def test_a_job_that_restarts_again_and_again_is_not_said_to_be_short_of_slots() -> None:
    late = Request("new", "j", FOUR, TWO, TWO, NOW_S - 200, NOW_S - 20)
    history = JobHistory(job_id="j", known_requested=TWO, in_flight=late)
    restarting = ObservedJob("j", "RESTARTING", {}, FOUR, free_slots=8)
    action = reconcile(Case(NOW_S, None, restarting, history, Limits(mode=Mode.AUTO), OutcomeCheck()))
    assert (action.verb, action.reason) == (Verb.ROLL_BACK, "not_filled")
    assert "is RESTARTING since the request" in action.detail
    assert "exceptions" in action.detail
