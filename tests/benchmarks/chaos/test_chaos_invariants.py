"""The harness of `make chaos` notices what must never happen, and how a fault ended."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.chaos.catalogue import CATALOGUE, draw_faults
from benchmarks.chaos.invariants import Record, find_violations
from benchmarks.chaos.jobs import PersonChange
from benchmarks.chaos.log_rows import LogRow
from benchmarks.chaos.outcome import PASSES_TICKS, STANDS_TICKS, JobState, Outcome, judge
from benchmarks.chaos.proxy import Put
from benchmarks.chaos.world import Span

NAMES = {"id": "clicks"}
OPEN = {"in_flight": None, "unfilled": None, "held_until_s": 0.0}
IN_FLIGHT = {**OPEN, "in_flight": {"step_id": "s"}}


def request(count: int, *, is_rollback: bool = False) -> dict[str, object]:
    return {"job_id": "id", "target": {"v": count}, "is_rollback": is_rollback}


def row(at_s: float, verb: str, reason: str = "plan", number: int = 1, entry: int = 1, **changes) -> LogRow:
    made = LogRow(at_s, "clicks", "id", number, entry, verb, reason, "", "", "plan", "s", False, at_s, None, OPEN, {})
    return replace(made, **changes)


def sent(at_s: float, count: int, number: int = 1, entry: int = 1, **changes) -> LogRow:
    return row(
        at_s, "rescale", number=number, entry=entry, **{"request": request(count), "history": IN_FLIGHT, **changes}
    )


def put(at_s: float, count: int, answered_s: float | None = None) -> Put:
    return Put("id", {"v": count}, at_s, [at_s], at_s + 0.1 if answered_s is None else answered_s)


def violated(puts, rows, changes=(), silences=()) -> list[str]:
    return [one.invariant for one in find_violations(Record(puts, rows, NAMES, changes, silences))]


CONFIRMED = row(2.0, "confirm", "runs_as_requested", entry=2, request=request(2))


def test_a_run_as_it_should_be_violates_nothing():
    rows = [sent(1.0, 2), CONFIRMED, sent(3.0, 3, number=2, entry=3)]
    assert violated([put(1.1, 2), put(3.1, 3)], rows) == []


@pytest.mark.parametrize("rows", [[], [sent(1.2, 2)], [sent(1.0, 3)], [sent(1.0, 2, is_dry_run=True)]])
def test_a_request_without_a_row_from_before_is_noticed(rows):
    assert violated([put(1.1, 2)], rows) == ["every request is in the log before it leaves"]


def test_a_row_stands_for_one_request():
    assert "every request is in the log before it leaves" in violated([put(1.1, 2), put(30.0, 2)], [sent(1.0, 2)])


def test_a_second_request_before_the_end_of_the_first_is_noticed():
    rows = [sent(1.0, 2), sent(3.0, 3, entry=2)]
    assert violated([put(1.1, 2), put(3.1, 3)], rows) == ["one request in flight per job"]
    taken_back = replace(rows[1], verb="roll_back")
    assert violated([put(1.1, 2), put(3.1, 3)], [rows[0], taken_back]) == []


def test_two_requests_on_the_way_at_once_are_noticed():
    rows = [sent(1.0, 2), CONFIRMED, sent(3.0, 3, entry=3)]
    assert violated([put(1.1, 2, answered_s=9.0), put(3.1, 3)], rows) == ["one request in flight per job"]


def test_a_request_while_held_is_noticed():
    rows, puts = [sent(1.0, 2)], [put(1.1, 2)]
    silent = "nothing is sent while held or off"
    assert violated(puts, rows, silences=[Span("clicks", 0.5, 2.0)]) == [silent]
    assert violated(puts, rows, silences=[Span(None, 0.5, 2.0)]) == [silent]
    assert violated(puts, rows, silences=[Span("billing", 0.5, 2.0), Span("clicks", 1.5, 2.0)]) == []


def test_a_request_that_undoes_a_person_is_noticed_but_not_one_that_had_left():
    change = PersonChange("clicks", {"v": 3}, 1.0, True)
    undone = "a person's change is not undone"
    assert violated([put(5.0, 2)], [sent(4.0, 2)], [change]) == [undone]
    assert violated([put(1.2, 2)], [sent(0.9, 2)], [change]) == []
    assert violated([put(1.2, 2)], [sent(1.1, 2)], [change]) == [undone]
    assert violated([put(5.0, 2)], [sent(4.0, 2)], [replace(change, is_change=False)]) == []


def test_a_request_under_an_older_lease_is_noticed():
    rows = [sent(1.0, 2, number=7), replace(CONFIRMED, lease_number=7), sent(3.0, 3, number=6)]
    assert "one writer at a time" in violated([put(1.1, 2), put(3.1, 3)], rows)


def test_a_hold_for_a_change_that_nobody_made_is_noticed():
    blamed = row(300.0, "refuse", "foreign_change")
    change = PersonChange("clicks", {"v": 3}, 290.0, True)
    wrong = "nobody is blamed for what Flink or the controller did"
    assert violated([], [blamed], [change]) == []
    for changes in ([], [replace(change, at_s=301.0)], [replace(change, at_s=50.0)], [replace(change, job="billing")]):
        assert violated([], [blamed], changes) == [wrong]


LATE, NOTED = {"late_s": 61.0}, {**OPEN, "late_since_s": 1.0}


def test_a_late_job_of_which_nobody_is_told_is_noticed_and_no_hold_is_its_end():
    alone = row(1.0, "refuse", "held", observed=LATE)
    told = replace(alone, history=NOTED)
    assert violated([], [alone]) == ["a late job is helped, or a person is told why not"]
    for fine in (told, replace(alone, observed={"late_s": 60.0}), replace(alone, observed={"late_s": None})):
        assert violated([], [fine]) == []
    assert judged(alone, ticks=100) is None
    assert judged(told) == Outcome("held", "held")


TARGET = {"enrich": 2}
AT_TARGET = JobState(TARGET, TARGET)
ELSEWHERE = JobState({"enrich": 1}, {"enrich": 1})


def judged(last: LogRow, state: JobState = ELSEWHERE, ticks: int = STANDS_TICKS) -> Outcome | None:
    return judge([last], "s", TARGET, lambda: state, ticks)


def test_outcomes():
    assert judge([], "s", TARGET, lambda: AT_TARGET, 100) is None
    assert judged(sent(1.0, 2), ticks=100) is None
    assert judged(CONFIRMED, AT_TARGET, ticks=0) == Outcome("confirmed")
    assert judged(CONFIRMED, ELSEWHERE, ticks=100) is None  # Flink does not run it
    assert judged(replace(CONFIRMED, step_id="other"), AT_TARGET) is None
    assert judged(replace(CONFIRMED, request=request(1, is_rollback=True))) == Outcome("rolled back")
    held_later = [CONFIRMED, row(3.0, "refuse", "on_hold", entry=3)]
    assert judge(held_later, "s", TARGET, lambda: AT_TARGET, 0) == Outcome("confirmed")
    assert judge(held_later, "s", TARGET, lambda: ELSEWHERE, STANDS_TICKS) == Outcome("held", "on_hold")
    assert judged(row(1.0, "refuse", "no_free_slots")) == Outcome("refused", "no_free_slots")
    assert judged(row(1.0, "refuse", "no_free_slots"), ticks=STANDS_TICKS - 1) is None
    assert judged(row(1.0, "refuse", "not_received")) is None  # it is tried again
    assert judged(row(1.0, "refuse", "not_received"), ticks=PASSES_TICKS) == Outcome("refused", "not_received")
    assert judged(row(1.0, "refuse", "held")) == Outcome("held", "held")
    assert judged(row(1.0, "wait", "mode_off")) == Outcome("held", "mode_off")
    assert judged(row(1.0, "wait", "settings_changed")) == Outcome("held", "settings_changed")
    assert judged(row(1.0, "wait", "cooldown"), ticks=100) is None
    assert judged(row(1.0, "wait", "late_request"), AT_TARGET) == Outcome("confirmed", "late_request")


def test_each_kind_comes_once_before_any_comes_again():
    drawn = draw_faults(len(CATALOGUE) + 5, random.Random(7))
    assert {fault.name for fault in drawn[: len(CATALOGUE)]} == {fault.name for fault in CATALOGUE}
    assert drawn == draw_faults(len(CATALOGUE) + 5, random.Random(7))
    assert drawn != draw_faults(len(CATALOGUE) + 5, random.Random(8))
