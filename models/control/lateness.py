"""Since when a job is late or down, by what the controller has polled: the log keeps it, so that a person is told."""

from __future__ import annotations

import math
from dataclasses import replace

from models.control.case import Case
from models.control.state import JobHistory

_CAUGHT_UP = 0.5  # share of what makes a job late: above it one that was late is late still


def note_lateness(history: JobHistory, case: Case) -> JobHistory:
    """Return the history with when the job became late or down; what is not known stays, until the job is gone.

    A stop under a request in flight is the request's: that ends in time, and the job is down if it stays so.
    """
    late_s, before, now_s = case.observed.late_s, case.history, case.now_s
    if late_s is None:
        is_gone = case.observed.job_id is None and not case.observed.problem
        return replace(history, late_since_s=None, down_since_s=None) if is_gone else history
    share = 1.0 if before.late_since_s is None else _CAUGHT_UP
    is_down = math.isinf(late_s)
    late_since_s = before.late_since_s if is_down else _since(before.late_since_s, now_s)
    is_late = late_s > share * case.limits.late_after_s
    is_stopped = is_down and history.in_flight is None
    return replace(
        history,
        late_since_s=late_since_s if is_late else None,
        down_since_s=_since(before.down_since_s, now_s) if is_stopped else before.down_since_s if is_down else None,
    )


def _since(known_s: float | None, now_s: float) -> float:
    return now_s if known_s is None else min(known_s, now_s)
