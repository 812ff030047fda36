"""Values that the rules are made from, in single cases: what answers cover, which bounds stay, what lines say."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.approval import StepApproval, use_approvals
from models.control.bounds import keep_as_asked
from models.control.limits import Limits
from models.control.log_lines import log_lines
from models.control.resubmission import find_lost
from models.control.state import Intention, JobHistory, ObservedJob, Origin, Request
from models.control.usable_intention import check_usable

RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
YES = StepApproval("step-1", TWO, FOUR, True, NOW_S - 60, NOW_S + 600, by="ann")
WANTS_FOUR = Intention(FOUR, Origin.PLAN, "step-1", "load rises", NOW_S + 600)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"valid_until_s": math.nan}, "valid_until_s = nan"),
        ({"settle_s": math.nan}, "settle_s = nan"),
        ({"settle_s": None}, "settle_s = None"),
        ({"parallelism": {"a": 0, "b": 4}}, "a = 0"),
    ],
)
def test_an_intention_that_nothing_can_be_made_of_is_one_for_what_is_in_force(
    changed: dict[str, object], words: str
) -> None:
    usable = check_usable(replace(WANTS_FOUR, **changed), RUNS)  # type: ignore[arg-type]
    assert usable.objection == "unusable_intention"
    assert words in usable.objection_detail
    assert (dict(usable.parallelism), usable.valid_until_s, usable.settle_s) == (TWO, math.inf, 0.0)


def test_a_yes_to_a_step_that_takes_no_slots_covers_that_step() -> None:
    """The vertex grows within the slots that another one of its group takes already."""
    before, target = {"a": 4, "b": 2}, {"a": 4, "b": 3}
    observed = replace(RUNS, running=before, requested=before)
    yes = replace(YES, before=before, target=target)
    assert yes.covers(observed, target, band=0.5)
    assert not yes.covers(observed, {"a": 4, "b": 4}, band=0.5)


def test_a_yes_reaches_no_further_than_the_band_in_slots_and_not_only_in_each_vertex() -> None:
    observed = replace(RUNS, slot_sharing_group={"a": "left", "b": "right"})
    assert YES.covers(observed, {"a": 6, "b": 4}, band=0.25)
    assert not YES.covers(observed, {"a": 6, "b": 6}, band=0.25)  # each by two, and both by four of eight slots
    for now, is_covered in (({"a": 1, "b": 2}, True), ({"a": 1, "b": 1}, False)):
        assert YES.covers(replace(observed, running=now, requested=now), FOUR, band=0.125) is is_covered


def test_of_the_answers_before_the_last_request_those_that_allowed_it_are_used_up() -> None:
    """A log of before ids of answers were kept names none of them."""
    history = JobHistory(job_id="j", request_times_s=(NOW_S - 30,), used_approvals=None)
    answers = [
        replace(YES, approval_id="1"),
        replace(YES, approval_id="2", is_approved=False),
        replace(YES, approval_id="3", at_s=NOW_S - 10),
    ]
    request = Request("step-1", "j", FOUR, TWO, TWO, NOW_S, NOW_S + 180)
    assert [one.approval_id for one in use_approvals(history, request, answers, NOW_S)] == ["1"]


def test_a_vertex_that_is_left_alone_stays_where_the_job_and_the_target_have_it() -> None:
    """A job that was deployed anew may lack a vertex of the settings, and a step one of the job."""
    limits = Limits(left_alone=("a", "gone"))
    assert keep_as_asked({"a": 4, "b": 4}, RUNS, limits) == {"a": 2, "b": 4}
    assert keep_as_asked({"b": 4}, RUNS, limits) == {"b": 4}
    assert keep_as_asked({"gone": 4, "b": 4}, RUNS, limits) == {"gone": 4, "b": 4}


def test_a_row_that_is_written_again_takes_no_answer_away() -> None:
    case = plain_case()
    row = {
        **{"at": datetime.fromtimestamp(case.now_s, UTC), "lease_number": 1, "decided_at_s": case.now_s},
        **{"verb": "rescale", "reason": "plan", "detail": "", "step_id": "step-1", "is_dry_run": False},
        **{"parallelism_from": TWO, "parallelism_to": FOUR, "slots_from": 2, "slots_to": 4, "state": "RUNNING"},
    }
    rows = [{**row, "entry": entry, "answer": answer} for entry, answer in enumerate(["", "accepted", ""])]
    assert [line.came_of for line in log_lines(rows)] == ["sent, accepted"]
    assert [line.came_of for line in log_lines(rows[:1])] == ["recorded; no answer is known"]


def test_nothing_is_lost_of_a_job_whose_resource_names_only_some_of_its_vertices() -> None:
    """The job was deployed anew with one vertex more: what the resource holds is of the job before."""
    history = JobHistory(job_id="j", known_requested={"a": 4})
    observed = replace(RUNS, declared={"a": 4})
    assert find_lost(history, observed) is None
    assert find_lost(history, replace(observed, requested={"a": 2})) == {"a": 4}
