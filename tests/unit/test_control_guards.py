"""Parts of conditions that only one case tells apart: each was left out once, and no other test noticed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from models.control.approval import StepApproval, UsedApproval, describe_void_yes
from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.partial_rise import fit_back
from models.control.readiness import Checkpoints, Guards, MemoryUsage, Readiness, combine_guards
from models.control.reconcile import reconcile
from models.control.requests import is_waited_with
from models.control.reviewed_step import is_reviewed, take_review
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request
from models.control.step_review import lower

NOW_S = 1_000_000.0
ONE, TWO, FOUR = ({"a": n, "b": n} for n in (1, 2, 4))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
KNOWN = JobHistory(job_id="j", known_requested=TWO)
AUTO = Limits(mode=Mode.AUTO)
CASE = Case(NOW_S, Intention(FOUR, Origin.PLAN, "step", "load rises", NOW_S + 600), RUNS, KNOWN, AUTO)
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 60, NOW_S + 120)


def test_a_job_that_does_not_run_is_waited_for_though_nothing_is_wanted_of_it() -> None:
    action = reconcile(replace(CASE, desired=None, observed=replace(RUNS, state="RESTARTING", running={})))
    assert (action.verb, action.reason) == (Verb.WAIT, "not_running")


def test_answers_without_an_id_are_told_apart_by_step_person_and_time() -> None:
    answer = StepApproval("step", TWO, FOUR, True, 10.0, 20.0, by="ann")
    other = replace(answer, by="bob")
    assert answer.key == "step ann 10.0"
    assert answer.key != other.key
    assert replace(answer, approval_id="7").key == "7"


@pytest.mark.parametrize(("guards", "reason"), [(Guards(heap_share_max=1.0), "gc_pressure"), (Guards(), "gc_pressure")])
def test_a_heap_that_may_be_full_leaves_garbage_collection_a_reason(guards: Guards, reason: str) -> None:
    ready = Readiness(Checkpoints(60.0, NOW_S, state_bytes=1), MemoryUsage(0.5, 0.9), ())
    fall = replace(CASE, desired=replace(CASE.desired, parallelism=ONE), observed=replace(RUNS, readiness=ready))
    assert reconcile(replace(fall, limits=replace(AUTO, guards=guards))).reason == reason
    free = replace(guards, heap_share_max=1.0, gc_share_max=1.0)
    assert reconcile(replace(fall, limits=replace(AUTO, guards=free))).reason == "plan"


def test_without_a_budget_of_the_cluster_nobody_need_count_its_slots_to_go_back() -> None:
    observed = replace(RUNS, cluster_slots_used=None)
    assert math.isinf(AUTO.cluster_slots_max)
    assert fit_back(FOUR, replace(CASE, observed=observed)) == FOUR
    budgeted = replace(CASE, observed=observed, limits=replace(AUTO, cluster_slots_max=20))
    assert fit_back(FOUR, budgeted) == TWO


def test_the_age_of_a_checkpoint_is_the_setting_or_the_smaller_of_setting_and_interval() -> None:
    alone = Guards(checkpoint_max_age_s=1000.0)
    both = replace(alone, is_age_of_interval_too=True)
    assert (alone.max_age_s(100.0), both.max_age_s(100.0), both.max_age_s(600.0)) == (1000.0, 300.0, 1000.0)
    assert not combine_guards([alone, alone]).is_age_of_interval_too
    assert combine_guards([alone, Guards()]).is_age_of_interval_too
    assert combine_guards([alone, both]).is_age_of_interval_too
    assert not combine_guards([Guards(), Guards()]).is_age_of_interval_too


def test_a_request_that_is_not_in_force_is_not_confirmed_by_what_runs() -> None:
    """What is asked for was already running: below it lay bounds that Flink had not come to."""
    request = replace(SENT, target=TWO, before=ONE, running_before=TWO)
    in_flight = replace(KNOWN, known_requested=ONE, in_flight=request)
    case = replace(CASE, history=in_flight, observed=replace(RUNS, requested=ONE))
    assert reconcile(case).verb is Verb.WAIT
    assert reconcile(replace(case, observed=RUNS)).verb is Verb.CONFIRM


def test_flink_that_has_begun_is_not_waited_with() -> None:
    request = replace(SENT, forced_at_s=NOW_S + 300)
    waits = replace(CASE, history=replace(KNOWN, in_flight=request), observed=replace(RUNS, requested=FOUR))
    assert is_waited_with(waits)
    assert not is_waited_with(replace(waits, observed=replace(waits.observed, running={"a": 4, "b": 2})))
    assert not is_waited_with(replace(waits, observed=RUNS))
    assert not is_waited_with(CASE)


def test_a_case_is_reviewed_where_a_step_is_wanted_and_none_is_in_flight() -> None:
    assert is_reviewed(CASE)
    assert not is_reviewed(replace(CASE, desired=None))
    assert not is_reviewed(replace(CASE, history=replace(KNOWN, in_flight=SENT)))


def test_a_review_lowers_only_operators_that_the_step_has() -> None:
    """One that the job has and the step has not, as one that nobody has, is refused by name."""
    assert CASE.desired is not None
    names = {"a": "source", "b": "sink", "c": "join"}
    result = {name: take_review("ours", lower({name: 3}, "few"), CASE.desired, TWO, names) for name in ("sink", "join")}
    assert dict(result["sink"].parallelism) == {"a": 4, "b": 3}
    assert "the step has no operator 'join'" in result["join"].objection_detail


def test_what_takes_a_request_back_for_a_savepoint_is_that_flink_would_soon_end_it() -> None:
    """A savepoint that was begun since, while Flink still waits for a checkpoint that nothing forces yet."""
    request = replace(SENT, forced_at_s=NOW_S + 300)
    sparing = Readiness(Checkpoints(600.0, NOW_S, state_bytes=1, savepoints=1), MemoryUsage(0.5, 0.0), ())
    waits = replace(
        CASE,
        history=replace(KNOWN, in_flight=request),
        observed=replace(RUNS, requested=FOUR, readiness=sparing),
    )
    assert reconcile(waits).verb is Verb.WAIT
    soon = replace(waits, history=replace(KNOWN, in_flight=replace(request, forced_at_s=NOW_S + 1)))
    assert reconcile(soon).verb is Verb.ROLL_BACK


def test_a_yes_that_allows_nothing_any_more_is_named_unless_it_was_a_no_or_is_used_up() -> None:
    yes = StepApproval("step", TWO, FOUR, True, NOW_S - 60, NOW_S + 600, by="ann", approval_id="7")

    def describe(answer: StepApproval, history: JobHistory = KNOWN) -> str:
        return describe_void_yes(replace(AUTO, approvals=(answer,)), history, RUNS, NOW_S)

    assert describe(yes).startswith("; the yes of ann (")
    assert describe(replace(yes, by="")).startswith("; the yes of a person (")
    assert describe(replace(yes, is_approved=False)) == ""
    assert describe(yes, replace(KNOWN, used_approvals=(UsedApproval("7", NOW_S + 600),))) == ""
