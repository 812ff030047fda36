"""A job's control log as lines for a person: a decision and the answer to its request are one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from models.scheduling.figures import format_count


@dataclass(frozen=True, slots=True)
class LogLine:
    """One decision on a job.

    Attributes:
        at: when it was made.
        observed: what ran then.
        desired: what the job was to run at; empty where nothing was desired.
        decision: verb and named reason.
        why: one sentence for a person.
        came_of: what became of it at once: sent and answered, or why not; empty where nothing was to be sent.
        step_id: of the step that it is about; empty without one.
        is_dry_run: whether nothing could be sent.
    """

    at: datetime
    observed: str
    desired: str
    decision: str
    why: str
    came_of: str
    step_id: str
    is_dry_run: bool


def log_lines(rows: Iterable[Mapping[str, Any]]) -> list[LogLine]:
    """Return a job's rows of ``ops.control_log``, with ``state`` for ``observed``, as lines, by their order."""
    lines: dict[tuple[Any, ...], LogLine] = {}
    for row in sorted(rows, key=lambda row: (row["lease_number"], row["entry"])):
        decision = (row["lease_number"], row["decided_at_s"], row["verb"], row["reason"])
        if row["answer"] and decision in lines:
            lines[decision] = replace(lines[decision], came_of=_came_of(row))
        else:
            lines.setdefault(decision, _line_of(row))
    return list(lines.values())


def _line_of(row: Mapping[str, Any]) -> LogLine:
    before, after = dict(row["parallelism_from"] or {}), dict(row["parallelism_to"] or {})
    slots = format_count(row["slots_from"], "slot") if before else "nothing"
    is_running = row["state"] in {"RUNNING", "", None}
    return LogLine(
        at=row["at"],
        observed=slots if is_running else f"{slots}, {row['state']}",
        desired=f"{format_count(row['slots_to'], 'slot')} ({describe_change(before, after)})" if after else "",
        decision=f"{str(row['verb']).replace('_', ' ')}: {row['reason']}",
        why=row["detail"] or "",
        came_of=_came_of(row),
        step_id=row["step_id"] or "",
        is_dry_run=bool(row["is_dry_run"]),
    )


def _came_of(row: Mapping[str, Any]) -> str:
    if row["verb"] not in {"rescale", "roll_back"}:
        return ""
    if row["is_dry_run"]:
        return "dry run: nothing was sent"
    if not row["answer"]:
        return "recorded; no answer is known"
    is_withdrawn = str(row["answer"]).startswith("withdrawn")
    return str(row["answer"]) if is_withdrawn else f"sent, {row['answer']}"


def describe_change(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the operators whose parallelism changes: ``enrich 6->9, sink 2->3``."""
    changed = (
        f"{operator} {before.get(operator, '?')}->{target}"
        for operator, target in sorted(after.items())
        if before.get(operator) != target
    )
    return ", ".join(changed) or "as it is"
