"""What a deployment's resource holds and Flink lost: asked for again in place, and never by another upgrade."""

from __future__ import annotations

from dataclasses import replace

from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.resubmission import find_lost
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

TWO, FOUR = ({"a": n, "b": n} for n in (2, 4))
LOST = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8, declared=FOUR)
HISTORY = JobHistory(job_id="j", known_requested=TWO, lost=FOUR)
CASE = Case(1_000_000.0, None, LOST, HISTORY, Limits(mode=Mode.AUTO))


def test_it_is_asked_for_again_where_the_job_is_rescaled_in_place() -> None:
    action = reconcile(CASE)
    assert (action.verb, action.reason, action.request.target) == (Verb.RESCALE, "restore", FOUR)


def test_no_upgrade_is_made_that_would_lose_it_again() -> None:
    costly = replace(CASE, observed=replace(LOST, upgrade_reason="in-place scaling is off"))
    step = Intention({"a": 6, "b": 6}, Origin.PLAN, "step", "load rises", CASE.now_s + 600)
    for case in (costly, replace(costly, desired=step)):
        action = reconcile(case)
        assert (action.verb, action.reason) == (Verb.REFUSE, "upgrade_loses_map")
        assert "in-place scaling is off" in action.detail


def test_a_map_that_a_person_wrote_and_the_controller_has_taken_up_is_lost_as_well() -> None:
    known = replace(HISTORY, known_requested=FOUR, lost=None)
    assert find_lost(known, LOST) == FOUR
    assert find_lost(known, replace(LOST, declared={"a": 4, "b": 5})) is None  # changed since
    assert find_lost(known, replace(LOST, requested=FOUR)) is None
