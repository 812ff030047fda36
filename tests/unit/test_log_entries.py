"""Which decisions are worth a row of the log, which step a row is about, and that it is read as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from control_entries import FOUR, NOW_S, TWO, entry_for, plain_case

from controller.log.control_log import LogEntry, Provenance, decision_of, explain_wish, is_news
from controller.log.last_entries import LastEntry
from controller.log.log_codec import entry_of, row_of
from include.arrow_rows import arrow_rows
from include.tables import CONTROL_LOG
from models.control.case import OutcomeCheck, Verb
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

STAMP = (3, 7, "0.1.0+abc")
AT_FOUR = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)


def sent() -> LogEntry:
    """Return the entry on a request that leaves."""
    return entry_for(plain_case())


def to_judge() -> JobHistory:
    """Return the history of a job that has carried it out."""
    return JobHistory(job_id="j", known_requested=FOUR, last_good=TWO, to_judge=sent().action.request)


def worse(mode: Mode) -> LogEntry:
    """Return the entry on a step that has made the job worse."""
    outcome = OutcomeCheck(is_worse=True, detail="it is slower than before")
    known: dict[str, Any] = {"desired": None, "observed": AT_FOUR, "history": to_judge(), "outcome": outcome}
    return entry_for(plain_case(mode=mode, **known))


def held(step_id: str, count: int = 4, origin: Origin = Origin.PLAN) -> LogEntry:
    """Return the entry on a step of a job that a person has put on hold."""
    wanted = Intention({"a": count, "b": count}, origin, step_id, "load rises", NOW_S + 600)
    return entry_for(plain_case(desired=wanted, limits=Limits(mode=Mode.AUTO, is_held=True)))


def row(entry: LogEntry) -> dict[str, Any]:
    return row_of(entry, *STAMP)


# what is news


@pytest.mark.parametrize("origin", [Origin.PLAN, Origin.SCHEDULE])
def test_another_step_of_a_plan_is_news_also_with_the_same_target(origin: Origin) -> None:
    assert is_news(held("s2", origin=origin), held("s1", origin=origin))
    assert not is_news(held("s1", origin=origin), held("s1", origin=origin))


def test_a_step_that_the_reactive_controller_names_anew_is_no_news_until_it_wants_something_else() -> None:
    last = held("s1", origin=Origin.REACTIVE)
    assert not is_news(held("s2", origin=Origin.REACTIVE), last)
    assert is_news(held("s2", 6, Origin.REACTIVE), last)


def wants(count: int | None, reason: str, origin: Origin = Origin.REACTIVE, **known: Any) -> LogEntry:
    wish = None if count is None else Intention({"a": count, "b": count}, origin, "s", reason, NOW_S + 600)
    return entry_for(plain_case(desired=wish, **known))


def test_a_wish_that_changes_names_why_beside_why_there_was_another() -> None:
    four = wants(4, "load at 400/s")
    assert explain_wish(four, None) == explain_wish(four, wants(None, "")) == "reactive: load at 400/s"
    assert explain_wish(four, wants(4, "load at 390/s")) == ""
    assert explain_wish(wants(None, ""), wants(None, "")) == explain_wish(wants(None, ""), None) == ""
    six = wants(6, "load at 600/s", Origin.PLAN)
    assert explain_wish(six, four) == "plan: load at 600/s; before: reactive: load at 400/s"
    narrower = wants(4, "load at 400/s", limits=Limits(mode=Mode.AUTO, slots_max=3))
    allowed = "limits, free slots or the job itself allow something else of the same: reactive: load at 400/s"
    assert explain_wish(narrower, four) == allowed


def test_a_wish_that_is_gone_says_why() -> None:
    four = wants(4, "load at 400/s")
    gone = "reactive: load at 400/s: no longer, "
    assert explain_wish(wants(None, ""), four) == f"{gone}the last evaluation leaves the job as it is"
    remarked = replace(wants(None, ""), case=replace(wants(None, "").case, remark="its sources are idle"))
    assert explain_wish(remarked, four) == f"{gone}its sources are idle"
    assert explain_wish(wants(None, "", now_s=NOW_S + 601), four) == f"{gone}its time is over"


def test_why_a_wish_has_changed_is_read_as_it_was_written() -> None:
    entry = replace(wants(4, "load at 400/s"), wish_changed="reactive: load at 400/s")
    (written,) = arrow_rows(CONTROL_LOG, [row(entry)]).to_pylist()
    assert entry_of(written).wish_changed == entry.wish_changed


def test_another_target_under_the_same_name_of_a_step_is_news() -> None:
    assert is_news(held("s1", 6), held("s1", 4))


def test_what_is_sent_back_is_the_target_of_the_decision() -> None:
    decision = decision_of(worse(Mode.AUTO))
    assert (decision.verb, dict(decision.target)) == ("roll_back", TWO)
    assert dict(decision_of(entry_for(plain_case(desired=None))).target) == {}


def test_a_history_that_has_changed_is_written_down_also_where_nothing_else_has_happened() -> None:
    judged = OutcomeCheck(is_worse=False, detail="no worse")
    known: dict[str, Any] = {"desired": None, "observed": AT_FOUR, "history": to_judge()}
    waiting, good = (entry_for(plain_case(**known, outcome=outcome)) for outcome in (OutcomeCheck(), judged))
    assert waiting.action.reason == good.action.reason == "as_desired"
    assert good.history.to_judge is None
    assert (is_news(waiting, None), is_news(good, None), is_news(good, waiting)) == (False, True, True)


def test_the_end_of_a_request_is_news() -> None:
    confirmed = entry_for(plain_case(NOW_S + 60, observed=AT_FOUR, history=sent().history, desired=None))
    assert confirmed.action.verb is Verb.CONFIRM
    assert is_news(confirmed, sent())


def test_a_request_leaves_after_a_rescale_and_after_no_other_decision() -> None:
    dry = entry_for(plain_case(mode=Mode.DRY_RUN))
    assert (dry.action.verb, dry.sends) == (Verb.RESCALE, False)
    confirmed = entry_for(plain_case(NOW_S + 60, observed=AT_FOUR, history=sent().history))
    assert confirmed.action.request is not None
    assert [one.sends for one in (sent(), worse(Mode.AUTO), confirmed, held("s1"))] == [True, True, False, False]


# the step that a row is about


def test_a_way_back_has_a_step_of_its_own_and_one_that_is_not_allowed_is_about_the_step_that_failed() -> None:
    back, refused = worse(Mode.AUTO), worse(Mode.DRY_RUN)
    assert (back.action.verb, back.step_id) == (Verb.ROLL_BACK, "step-1-rollback")
    assert (refused.action.verb, refused.action.reason, refused.step_id) == (Verb.REFUSE, "worse_than_before", "step-1")


def test_a_decision_on_the_next_step_is_not_about_the_one_that_is_still_judged() -> None:
    six = Intention({"a": 6, "b": 6}, Origin.PLAN, "step-2", "load rises", NOW_S + 600)
    limits = Limits(mode=Mode.AUTO, is_held=True)
    entry = entry_for(plain_case(desired=six, observed=AT_FOUR, history=to_judge(), limits=limits))
    assert (entry.action.reason, entry.step_id) == ("on_hold", "step-2")


# rows


@pytest.mark.parametrize("answer", ["", "accepted"])
def test_an_entry_comes_back_from_its_row_with_its_answer(answer: str) -> None:
    entry = entry_for(plain_case(), answer=answer, provenance=Provenance({"a": "map"}, NOW_S - 600.0, "m"))
    assert entry_of(row(entry)) == LogEntry(
        *(entry.job, entry.case, entry.action, entry.history, answer),
        answered_at_s=NOW_S + 1.5 if answer else None,
        provenance=entry.provenance,
    )


@pytest.mark.parametrize(
    ("running", "requested", "before"),
    [(TWO, FOUR, TWO), ({}, FOUR, FOUR), ({}, None, {})],
    ids=["runs", "waits for slots", "gone"],
)
def test_a_row_says_what_the_job_ran_with_or_else_what_it_was_asked_for(running, requested, before) -> None:
    made = row(entry_for(plain_case(observed=ObservedJob("j", "RUNNING", running, requested))))
    assert made["parallelism_from"] == before
    assert made["slots_from"] == max(before.values(), default=0)


def test_a_row_says_what_is_sent_before_what_is_desired() -> None:
    made = row(worse(Mode.AUTO))
    assert (made["parallelism_to"], made["slots_to"], made["step_id"]) == (TWO, 2, "step-1-rollback")
    assert row(held("s1"))["parallelism_to"] == FOUR


def test_a_last_row_is_read_when_it_is_asked_for_and_one_that_cannot_be_read_says_so_each_time() -> None:
    assert LastEntry(row=row(sent())).last == sent()
    entry = sent()
    assert LastEntry(entry=entry).last is entry
    broken = LastEntry(row=row(sent()) | {"observed": "{"})
    for _ in range(2):
        with pytest.raises(ValueError, match="its last row cannot be read"):
            assert broken.last
    with pytest.raises(ValueError, match="neither a row nor an entry is known"):
        assert LastEntry().last
