"""The page's lines of rescales: a request and its answer are one, and a step that is sent again is another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from include.tables import RESCALE_OUTCOMES
from page.job_lines import list_rescales

START = datetime(2026, 11, 29, 11, 47, tzinfo=UTC)


def row(after_s: float, step: str, answer: str | None, slots: tuple[int, int], why: str) -> dict[str, Any]:
    own = {
        "at": START + timedelta(seconds=after_s),
        "verb": "rescale",
        "step_id": step,
        "answer": answer,
        "detail": why,
    }
    return own | {"reason": "", "is_dry_run": False, "slots_from": slots[0], "slots_to": slots[1], "entry": after_s}


def test_the_same_step_sent_twice_is_two_lines_each_with_what_came_of_it() -> None:
    log = [
        *(row(after_s, "up", answer, (2, 3), "first") for after_s, answer in ((0, None), (1, "accepted"))),
        *(row(after_s, "down", answer, (3, 2), "then") for after_s, answer in ((300, None), (301, "accepted"))),
        *(row(after_s, "up", answer, (2, 3), "again") for after_s, answer in ((400, None), (401, "accepted"))),
    ]
    outcome = dict.fromkeys(RESCALE_OUTCOMES.columns) | {"cluster": "demo", "job": "orders", "step_id": "up"}
    outcome |= {"requested_at": START, "is_worse": False, "rolled_back": False}
    lines = list_rescales(log, [outcome], "demo", "orders")
    assert [(one.detail, one.answer, one.outcome is not None) for one in lines] == [
        *(("again", "accepted", False), ("then", "accepted", False), ("first", "accepted", True))
    ]
    assert [one.at_s - START.timestamp() for one in lines] == [400, 300, 0]
