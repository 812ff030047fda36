"""A job's control log as lines: what ran, what was desired, what was decided and what came of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from models.control.log_lines import LogLine, describe_change, log_lines

AT = datetime(2026, 11, 20, 18, tzinfo=UTC)
ROW: dict[str, Any] = {
    **{"at": AT, "cluster": "live", "job": "orders", "lease_number": 1, "entry": 1},
    **{"verb": "rescale", "reason": "plan", "detail": "load rises", "answer": None, "origin": "plan"},
    **{"step_id": "step-1", "mode": "auto", "is_dry_run": False, "state": "RUNNING", "decided_at_s": 100.0},
    **{"parallelism_from": {"map": 2, "sink": 1}, "parallelism_to": {"map": 4, "sink": 1}},
    **{"slots_from": 2, "slots_to": 4},
}


def test_a_decision_and_the_answer_to_its_request_are_one_line() -> None:
    answered = ROW | {"entry": 2, "answer": "accepted", "at": AT.replace(minute=1)}
    expected = LogLine(
        at=AT,
        observed="2 slots",
        desired="4 slots (map 2->4)",
        decision="rescale: plan",
        why="load rises",
        came_of="sent, accepted",
        step_id="step-1",
        is_dry_run=False,
    )
    assert log_lines([answered, ROW]) == [expected]  # in the order in which they were made, not given


def test_what_is_not_told_is_empty() -> None:
    nothing = dict.fromkeys(("detail", "step_id", "parallelism_from", "parallelism_to", "is_dry_run", "slots_from"))
    (line,) = log_lines([ROW | nothing | {"verb": "wait", "reason": "as_desired"}])
    assert line == LogLine(AT, "nothing", "", "wait: as_desired", "", "", "", False)


@pytest.mark.parametrize(
    ("state", "told"),
    [("RUNNING", "2 slots"), ("", "2 slots"), (None, "2 slots"), ("RESTARTING", "2 slots, RESTARTING")],
)
def test_a_state_is_said_where_the_job_does_not_run(state: str | None, told: str) -> None:
    assert log_lines([ROW | {"state": state}])[0].observed == told


@pytest.mark.parametrize(
    ("change", "came_of"),
    [
        ({"verb": "refuse", "answer": "accepted"}, ""),
        ({"verb": "confirm"}, ""),
        ({"is_dry_run": True}, "dry run: nothing was sent"),
        ({}, "recorded; no answer is known"),
        ({"answer": "accepted"}, "sent, accepted"),
        ({"verb": "roll_back", "answer": "refused_by_flink: 400"}, "sent, refused_by_flink: 400"),
        ({"answer": "withdrawn_before_sending: on_hold"}, "withdrawn_before_sending: on_hold"),
    ],
)
def test_what_came_of_a_request(change: dict[str, Any], came_of: str) -> None:
    assert log_lines([ROW | change])[0].came_of == came_of


def test_a_verb_of_two_words_is_written_as_two() -> None:
    assert log_lines([ROW | {"verb": "roll_back", "reason": "not_filled"}])[0].decision == "roll back: not_filled"
    assert log_lines([ROW | {"is_dry_run": True}])[0].is_dry_run is True


def test_decisions_stay_apart_and_in_their_order() -> None:
    later = [
        ROW | {"entry": 2, "decided_at_s": 160.0, "reason": "pin"},
        ROW | {"lease_number": 2, "entry": 1, "decided_at_s": 220.0, "verb": "refuse", "reason": "on_hold"},
        ROW
        | {
            "lease_number": 2,
            "entry": 2,
            "decided_at_s": 220.0,
            "answer": "accepted",
        },  # without its own row, which is older than what was read
        ROW
        | {"lease_number": 2, "entry": 3, "decided_at_s": 220.0, "verb": "refuse", "reason": "on_hold", "slots_to": 9},
    ]
    result = log_lines([*reversed(later), ROW])
    assert [line.decision for line in result] == ["rescale: plan", "rescale: pin", "refuse: on_hold", "rescale: plan"]
    assert [line.came_of for line in result] == [*["recorded; no answer is known"] * 2, "", "sent, accepted"]
    assert result[2].desired.startswith("4 slots")  # the first row of a decision is its line


def test_a_change_names_the_operators_that_change_in_the_order_of_the_alphabet() -> None:
    assert describe_change({"b": 2, "a": 6, "c": 1}, {"c": 1, "b": 3, "a": 9}) == "a 6->9, b 2->3"
    assert describe_change({}, {"new": 3}) == "new ?->3"
    assert describe_change({"a": 1}, {"a": 1}) == "as it is"
