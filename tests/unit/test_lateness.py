"""Since when a job is late or down stands in the log, with why nothing is done: that is what a person is told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, entry_for, plain_case

from controller.log.control_log import is_news
from controller.log.log_codec import row_of
from fleet.decisions import decision_of
from include.arrow_rows import arrow_rows
from include.tables import CONTROL_LOG
from models.control.case import Action, Case, Verb
from models.control.history import advance_history, end_unsent_request
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.reconcile import reconcile
from models.control.state import JobHistory, ObservedJob, Request

RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory("j", known_requested=TWO)
LATE, DOWN = replace(KNOWN, late_since_s=NOW_S - 300), replace(KNOWN, down_since_s=NOW_S - 300)
SENT = Request("s", "j", FOUR, TWO, TWO, NOW_S - 10, NOW_S + 300)


def case(late_s: float | None, history: JobHistory = KNOWN, observed: ObservedJob = RUNS, at_s: float = NOW_S) -> Case:
    return Case(at_s, None, replace(observed, late_s=late_s), history, Limits(late_after_s=100.0))


def since(given: Case) -> tuple[float | None, float | None]:
    after = advance_history(given, reconcile(given))
    return after.late_since_s, after.down_since_s


@pytest.mark.parametrize(
    ("late_s", "history", "expected"),
    [
        (100.0, KNOWN, (None, None)),
        (101.0, KNOWN, (NOW_S, None)),
        (101.0, LATE, (NOW_S - 300, None)),
        (51.0, LATE, (NOW_S - 300, None)),  # what comes and goes is one lateness
        (50.0, LATE, (None, None)),
        (None, LATE, (NOW_S - 300, None)),  # nobody knows
        (None, KNOWN, (None, None)),
        (math.inf, KNOWN, (None, NOW_S)),
        (math.inf, DOWN, (None, NOW_S - 300)),
        (math.inf, LATE, (NOW_S - 300, NOW_S)),
        (101.0, DOWN, (NOW_S, None)),
        (math.inf, replace(KNOWN, in_flight=SENT), (None, None)),  # the stop of a rescale
        (math.inf, replace(DOWN, in_flight=SENT), (None, NOW_S - 300)),  # it was down before
        (101.0, replace(LATE, late_since_s=NOW_S + 500), (NOW_S, None)),  # the clock was set back
        (101.0, replace(LATE, job_id="before"), (NOW_S - 300, None)),  # it was submitted anew
    ],
)
def test_since_when_a_job_is_late_or_down(
    late_s: float | None, history: JobHistory, expected: tuple[float | None, float | None]
) -> None:
    assert since(case(late_s, history)) == expected


def test_a_job_that_is_gone_is_neither_and_one_that_has_failed_is_down() -> None:
    gone = ObservedJob(None, "", {}, None)
    assert since(case(None, LATE, gone)) == since(case(None, DOWN, gone)) == (None, None)
    assert since(case(math.inf, KNOWN, gone)) == (None, NOW_S)
    assert since(case(None, LATE, replace(gone, problem="unreadable_reply"))) == (NOW_S - 300, None)


def test_a_job_that_is_late_or_down_needs_help() -> None:
    assert [one.needs_help for one in (KNOWN, LATE, DOWN)] == [False, True, True]


def test_a_request_that_is_withdrawn_before_it_leaves_does_not_make_the_job_late_anew() -> None:
    assert end_unsent_request(case(101.0, LATE)).late_since_s == NOW_S - 300
    first = end_unsent_request(case(101.0))
    assert end_unsent_request(case(101.0, first, at_s=NOW_S + 60)).late_since_s == NOW_S


def test_a_cluster_whose_clock_is_wrong_has_late_jobs_all_the_same() -> None:
    given = plain_case(observed=replace(RUNS, late_s=101.0, told_at_s=NOW_S - 4 * 3600))
    assert reconcile(given).reason == "clock_differs"
    assert since(given) == (NOW_S, None)


def test_what_is_decided_of_a_late_job_is_news_and_again_after_hours() -> None:
    def wait(given: Case, reason: Reason = Reason.AS_DESIRED):
        action = Action(Verb.WAIT, reason)
        return replace(entry_for(given), action=action, history=advance_history(given, action))

    well, late = wait(case(10.0)), wait(case(101.0, LATE))
    assert not is_news(well, None)
    assert is_news(wait(case(101.0)), well)
    assert is_news(late, wait(case(101.0, LATE), Reason.CONCURRENT_RESCALES))
    assert not is_news(late, late)
    assert is_news(wait(case(101.0, LATE, at_s=NOW_S + 6 * 3600)), late)


def test_a_reader_of_the_log_finds_it() -> None:
    entry = entry_for(
        plain_case(NOW_S, observed=replace(RUNS, late_s=math.inf), history=replace(DOWN, late_since_s=1.0))
    )
    (row,) = arrow_rows(CONTROL_LOG, [row_of(replace(entry, job="c/j"), 1, 1, "v")]).to_pylist()
    fact = decision_of(row)
    assert (fact.late_since_s, fact.down_since_s) == (1.0, NOW_S - 300)
