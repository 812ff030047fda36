"""What a person takes back or forbids, in single cases: an undo with its gates, holds, blocks and a no."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from include.utc import HOUR_S
from models.control.approval import StepApproval
from models.control.case import Case, OutcomeCheck, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import BlockedTarget, JobHistory, Mode, ObservedJob, Request
from models.control.undo import Undo, form_undo, name_hold

AUTO = Limits(mode=Mode.AUTO)
AT_FOUR = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)
RESTARTS = replace(AT_FOUR, state="RESTARTING", running={})
UNDO = Undo("step-1", "j", undone=FOUR, target=TWO, by="ada", until_s=NOW_S + 7200)
TAKES_BACK = replace(AUTO, is_held=True, undo=UNDO)
SENT = Request("step-1", "j", FOUR, TWO, TWO, NOW_S - 600, NOW_S - 420)
HISTORY = JobHistory(job_id="j", known_requested=FOUR, last_sent=SENT)
CASE = plain_case(observed=AT_FOUR, history=HISTORY, limits=TAKES_BACK)


def case_with(case: Case = CASE, **limits: object) -> Case:
    return replace(case, limits=replace(case.limits, **limits))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "case",
    [
        CASE,
        replace(CASE, observed=RESTARTS),
        case_with(allows_falls=False),
        replace(CASE, history=replace(CASE.history, last_change_at_s=NOW_S - 1)),
        replace(CASE, observed=replace(AT_FOUR, neighbours_rescaled=("live/other",))),
        case_with(mode=Mode.APPROVE),
        case_with(replace(CASE, observed=replace(AT_FOUR, told_at_s=NOW_S - 5 * HOUR_S)), has_blackouts=True),
    ],
    ids=["hold", "restarts", "no falls", "cooldown", "neighbour", "approve", "wrong clock"],
)
def test_an_undo_goes_out_whatever_else_holds_the_job_back(case: Case) -> None:
    action = reconcile(case)
    assert (action.verb, action.reason, action.is_dry_run) == (Verb.ROLL_BACK, "undo", False)
    assert action.request is not None
    assert (dict(action.request.target), action.request.is_rollback) == (TWO, True)


def test_an_undo_goes_out_of_a_job_that_is_suspended_for_its_bad_steps() -> None:
    """The suspension is a dry-run for steps; what went wrong may still be taken back."""
    suspended = case_with(replace(CASE, history=replace(CASE.history, bad_steps_s=(NOW_S - 60,))), bad_steps_max=1)
    assert not reconcile(suspended).is_dry_run
    six = replace(suspended.desired, parallelism={"a": 6, "b": 6})
    step = replace(suspended, desired=six, limits=replace(AUTO, bad_steps_max=1))
    assert reconcile(step).is_dry_run


def test_an_undo_waits_for_a_job_that_neither_runs_nor_is_brought_back() -> None:
    assert reconcile(replace(CASE, observed=replace(RESTARTS, state="CANCELLING"))).reason == "not_running"


def test_an_undo_is_for_the_job_that_the_rescale_was_sent_for() -> None:
    """A job that was deployed anew may run at the same parallelism for another reason."""
    assert form_undo(UNDO, HISTORY, AT_FOUR, NOW_S) is not None
    assert form_undo(UNDO, HISTORY, replace(AT_FOUR, job_id="k"), NOW_S) is None


def test_an_undo_is_over_when_the_job_is_asked_for_something_else() -> None:
    for requested in (TWO, {"a": 5, "b": 4}):
        assert form_undo(UNDO, HISTORY, replace(AT_FOUR, requested=requested), NOW_S) is None


@pytest.mark.parametrize(
    ("undo", "history"),
    [
        (replace(UNDO, step_id="never-sent"), HISTORY),
        (replace(UNDO, target={"a": 1, "b": 1}), HISTORY),
        (UNDO, replace(HISTORY, last_sent=None)),
        (UNDO, replace(HISTORY, last_sent=replace(SENT, step_id="step-2"))),
        (UNDO, replace(HISTORY, last_sent=replace(SENT, target={"a": 9, "b": 4}))),
        (UNDO, replace(HISTORY, last_sent=replace(SENT, job_id="k"))),
    ],
)
@pytest.mark.covers("harm undo-forged")
def test_an_undo_of_what_the_log_does_not_know_is_none_and_the_job_is_held(undo: Undo, history: JobHistory) -> None:
    action = reconcile(case_with(replace(CASE, history=history), undo=undo))
    assert (action.verb, action.reason) == (Verb.REFUSE, "on_hold")


def test_the_last_request_is_known_until_the_next_one_and_what_takes_it_back_is_none() -> None:
    back = reconcile(CASE)
    assert advance_history(CASE, back).last_sent == SENT
    up = reconcile(plain_case(limits=AUTO))
    assert up.request is not None
    assert advance_history(plain_case(limits=AUTO), up).last_sent == up.request
    before = replace(HISTORY, last_sent=None, to_judge=SENT)  # a log of before it was kept
    assert form_undo(UNDO, before, AT_FOUR, NOW_S) is not None


def test_what_a_person_takes_back_is_no_bad_step_and_may_be_tried_when_the_hold_is_over() -> None:
    after = advance_history(CASE, reconcile(CASE))
    assert after.bad_steps_s == ()
    assert [one.until_s for one in after.blocked] == [NOW_S]


def test_what_did_harm_is_a_bad_step_and_is_not_tried_for_a_time() -> None:
    judged = replace(reconcile(plain_case()).request, sent_at_s=NOW_S - 900)
    history = replace(CASE.history, to_judge=judged, last_good=TWO)
    case = replace(CASE, history=history, limits=AUTO, outcome=OutcomeCheck(True, "records wait"))
    after = advance_history(case, reconcile(case))
    assert after.bad_steps_s == (NOW_S,)
    assert [one.until_s for one in after.blocked] == [NOW_S + AUTO.block_s]


def test_a_hold_after_a_foreign_change_ends_when_a_person_releases_it() -> None:
    history = JobHistory(job_id="j", known_requested=TWO, held_until_s=NOW_S + 600, held_because="somebody")
    held = plain_case(history=history)
    assert reconcile(held).reason == "held"
    assert reconcile(case_with(held, lifted_blocks=("held-1.0",))).reason == "held"
    assert reconcile(case_with(held, lifted_blocks=(name_hold(history),))).reason == "plan"


def test_a_block_says_why_and_who_ends_it() -> None:
    def detail_of(block: BlockedTarget) -> str:
        action = reconcile(plain_case(history=JobHistory(job_id="j", known_requested=TWO, blocked=(block,))))
        assert action.reason == "blocked_target"
        return action.detail

    assert detail_of(BlockedTarget(FOUR, NOW_S + 60)) == "this parallelism did harm lately"
    assert detail_of(BlockedTarget(FOUR, NOW_S + 60, because="the job failed")) == "the job failed"
    assert "tidewise lift" in detail_of(BlockedTarget(FOUR, math.inf, "step-1-7", "the job failed"))


def test_a_lift_without_an_id_ends_no_block() -> None:
    """A block that ends by itself has no id either."""
    blocked = JobHistory(job_id="j", known_requested=TWO, blocked=(BlockedTarget(FOUR, NOW_S + 60),))
    assert reconcile(case_with(plain_case(history=blocked), lifted_blocks=("",))).reason == "blocked_target"


NO = StepApproval("step-1", TWO, FOUR, False, NOW_S - 60, NOW_S + 600, by="ann")


@pytest.mark.parametrize(
    ("mode", "by", "reason"),
    [
        (Mode.AUTO, "ann", "denied"),
        (Mode.AUTO, "", "plan"),
        (Mode.APPROVE, "", "denied"),
        (Mode.DRY_RUN, "ann", "plan"),
    ],
)
def test_a_no_of_a_person_counts_in_auto_one_of_nobody_where_answers_are_asked_for(
    mode: Mode, by: str, reason: str
) -> None:
    """A step that nobody answered in time is not sent in the mode approve; a dry run says what it would send."""
    assert reconcile(case_with(plain_case(mode=mode), approvals=(replace(NO, by=by),))).reason == reason


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.APPROVE])
def test_a_pin_needs_no_yes_uses_none_up_and_goes_before_a_no(mode: Mode) -> None:
    yes = replace(NO, is_approved=True, approval_id="7")
    for answer in (yes, NO):
        action = reconcile(case_with(plain_case(mode=mode), pin=FOUR, approvals=(answer,)))
        assert (action.reason, action.request and action.request.approvals) == ("pin", ())


def test_a_yes_is_used_up_only_where_one_is_asked_for() -> None:
    yes = replace(NO, is_approved=True, approval_id="7")
    used = {
        mode: reconcile(case_with(plain_case(mode=mode), approvals=(yes,))).request.approvals
        for mode in (Mode.AUTO, Mode.APPROVE)
    }
    assert used == {Mode.AUTO: (), Mode.APPROVE: ("7",)}
