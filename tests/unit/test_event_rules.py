"""Replies about a job that cannot be: the first rule that each breaks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from reply_types import reply_type

from spark_jobs.raw_parsing.event_rules import find_event_faults
from spark_jobs.raw_parsing.left_texts import convert

A, B, C = ("a" * 32, "b" * 32, "c" * 32)
NOW_MS = 1_795_560_000_000
SKEW_MS = 1_000
REPLY = reply_type()


def job(**changes: Any) -> dict[str, Any]:
    return {"jid": A, "name": "x", "state": "RUNNING", "timestamps": {"RUNNING": 0}, "vertices": [{"id": B}], **changes}


def plan(*nodes: tuple[Any, list[Any]], jid: Any = A) -> dict[str, Any]:
    return {"plan": {"jid": jid, "nodes": [{"id": one, "inputs": [{"id": i} for i in fed]} for one, fed in nodes]}}


def checkpoint(**changes: Any) -> dict[str, Any]:
    return {"status": "COMPLETED", "trigger_timestamp": NOW_MS, "latest_ack_timestamp": NOW_MS, **changes}


CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("job", job(), None),
    ("job", job(vertices=[]), None),
    ("job", job(vertices=[{"id": B, "name": None}, {"id": C, "name": "x"}]), None),
    ("job", job(jid=None), None),
    ("job", job(timestamps={"RUNNING": NOW_MS + SKEW_MS, "FAILED": -1}), None),
    ("job", job(name=""), "missing_field"),
    ("job", job(name=None), "missing_field"),
    ("job", job(state=None), "missing_field"),
    ("job", job(vertices=None), "missing_field"),
    ("job", job(vertices=[None]), "wrong_type"),
    ("job", job(vertices=[{"id": B}, {"id": None}]), "wrong_type"),
    ("job", job(vertices=[{"id": B}, {"id": C}, {"id": B}]), "wrong_type"),
    ("job", job(vertices=[{"id": B}, {"id": C.upper()}]), "bad_id"),
    ("job", job(jid=B), "job_mismatch"),
    ("job", job(plan={"jid": B}, jid=None), "job_mismatch"),
    ("job", job(timestamps={"RUNNING": NOW_MS + SKEW_MS + 1}), "time_out_of_range"),
    ("job", job(timestamps={"RUNNING": NOW_MS // 1000}), "time_out_of_range"),
    ("job", job(timestamps={"RUNNING": 0, "FAILED": 253_402_300_799_999}), "time_out_of_range"),
    ("job", job(timestamps={"RUNNING": 2**63 - 1}), "time_out_of_range"),
    ("plan", plan((B, []), (C, [B])), None),
    ("plan", plan((B, [C]), (C, [])), None),
    ("plan", {"plan": {"nodes": [{"id": B, "inputs": None}]}}, None),
    ("plan", {"plan": None}, "missing_field"),
    ("plan", plan((B, []), (B, [])), "wrong_type"),
    ("plan", plan((None, [])), "wrong_type"),
    ("plan", plan((B, []), (C, [A])), "bad_graph"),
    ("plan", plan((B, []), (C, [None])), "bad_graph"),
    ("plan", plan((B, []), jid=C), "job_mismatch"),
    ("plan", plan((B, []), jid=""), "job_mismatch"),
    ("plan", plan(jid=""), None),  # of a job that initialises
    ("plan", plan(jid=C), "job_mismatch"),
    ("checkpoints", {"latest": {"completed": checkpoint()}, "history": [checkpoint(), None]}, None),
    ("checkpoints", {"latest": None, "history": None}, None),
    ("checkpoints", {"history": [checkpoint(status="FAILED", trigger_timestamp=1)]}, None),
    ("checkpoints", {"history": [checkpoint(), checkpoint(trigger_timestamp=1)]}, "time_out_of_range"),
    ("checkpoints", {"latest": {"completed": checkpoint(latest_ack_timestamp=2 * NOW_MS)}}, "time_out_of_range"),
    ("exceptions", {"exceptionHistory": {"entries": [{"timestamp": NOW_MS}, None]}}, None),
    ("exceptions", {"exceptionHistory": {"entries": [{"timestamp": 2 * NOW_MS}]}}, "time_out_of_range"),
    ("overview", job(name=None, jid=B, vertices=None), None),
]


def faults(*cases: tuple[str, dict[str, Any] | None]) -> list[str | None]:
    count = len(cases)
    result = find_event_faults(
        pa.array([kind for kind, _ in cases], pa.string()),
        pa.array([A] * count, pa.string()),
        pa.array([NOW_MS] * count, pa.int64()),
        pa.array([None if body is None else convert(body, REPLY) for _, body in cases], REPLY),
        SKEW_MS,
    )
    return [result[row]["reason"] if row in result else None for row in range(count)]


@pytest.mark.covers("ingest_review 1.1", "ingest_review 1.2", "ingest_review 2.10")
@pytest.mark.parametrize(("kind", "body", "reason"), CASES)
def test_each_rule(kind: str, body: dict[str, Any], reason: str | None) -> None:
    assert faults((kind, body)) == [reason]


def test_many_at_once_have_their_own_faults() -> None:
    several = [(kind, body) for kind, body, _ in CASES] + [("job", None)]
    assert faults(*several, *reversed(several)) == [
        *[reason for *_, reason in CASES],
        None,
        None,
        *[reason for *_, reason in reversed(CASES)],
    ]


def test_nothing_has_no_fault() -> None:
    assert faults() == []
