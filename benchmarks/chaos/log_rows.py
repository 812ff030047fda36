"""Rows of ``ops.control_log`` with the time at which each was committed, by the clock of this machine.

The times in the rows are the controller's, whose clock the harness sets forward and back.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from include.commit_once import commit_path
from include.tables import CONTROL_LOG

_LATE_AFTER_S = 60.0  # planner.costs.late_after_s
_COLUMNS = [
    *("job", "job_id", "lease_number", "entry", "verb", "reason", "detail", "answer", "origin", "step_id", "mode"),
    *("is_dry_run", "decided_at_s", "observed", "request", "history"),
]


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row.

    Attributes:
        committed_s: when it was in the table, epoch seconds.
        request, history, observed: as :mod:`controller.log.log_codec` writes them, decoded.
        sends: whether a request may leave after it: it is the row of a decision to send, not that of the answer.
    """

    committed_s: float
    job: str
    job_id: str | None
    lease_number: int
    entry: int
    verb: str
    reason: str
    detail: str
    answer: str
    origin: str | None
    step_id: str
    is_dry_run: bool
    decided_at_s: float
    request: dict[str, Any] | None
    history: dict[str, Any]
    observed: dict[str, Any]

    @property
    def sends(self) -> bool:
        """Whether a request may leave after it."""
        return self.verb in {"rescale", "roll_back"} and not self.answer and not self.is_dry_run

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the rows of its job."""
        return self.lease_number, self.entry

    @property
    def is_left_alone(self) -> bool:
        """Whether its job is late by the polls and the row does not tell a person."""
        late_s = self.observed.get("late_s")
        is_late = isinstance(late_s, int | float) and late_s > _LATE_AFTER_S
        return is_late and not self.answer and self.history.get("late_since_s") is None

    @property
    def held_until_s(self) -> float:
        """Until when its job is left alone, by the clock of this machine."""
        return self.committed_s + float(self.history["held_until_s"]) - self.decided_at_s


class LogRows:
    """The rows so far; only new commits are read."""

    def __init__(self, lake: Path) -> None:
        self._root = lake / CONTROL_LOG.relative_path
        self._rows: list[LogRow] = []
        self._next = 0
        self._lock = threading.Lock()

    def read(self) -> list[LogRow]:
        """Return all rows in the order of their commits."""
        with self._lock:
            while (commit := self._root / commit_path(self._next)).exists():
                self._rows += self._read_commit(commit)
                self._next += 1
            return list(self._rows)

    def of_job(self, job: str, since_s: float = 0.0) -> list[LogRow]:
        """Return the rows of a job that were committed since a time, in the order of their places."""
        return sorted((r for r in self.read() if r.job == job and r.committed_s >= since_s), key=lambda row: row.place)

    def _read_commit(self, commit: Path) -> list[LogRow]:
        committed_s = commit.stat().st_mtime
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        files = [self._root / unquote(action["add"]["path"]) for action in actions if "add" in action]
        return [_row_of(row, committed_s) for file in files for row in pq.ParquetFile(file).read(_COLUMNS).to_pylist()]


def _row_of(row: dict[str, Any], committed_s: float) -> LogRow:
    return LogRow(
        committed_s=committed_s,
        job=row["job"],
        job_id=row["job_id"],
        lease_number=row["lease_number"],
        entry=row["entry"],
        verb=row["verb"],
        reason=row["reason"],
        detail=row["detail"] or "",
        answer=row["answer"] or "",
        origin=row["origin"],
        step_id=row["step_id"] or "",
        is_dry_run=bool(row["is_dry_run"]),
        decided_at_s=row["decided_at_s"],
        request=None if row["request"] is None else json.loads(row["request"]),
        history=json.loads(row["history"]),
        observed=json.loads(row["observed"]),
    )
