"""Schedules that are on: a job that is outside of them, and of which nothing else is wanted, is brought within."""

from __future__ import annotations

from include.utc import HOUR_S
from models.control.bounds import bound_target
from models.control.case import Case
from models.control.state import Intention, Origin


def keep_schedule(case: Case) -> Intention | None:
    """Return what a job should run at by its schedules; None without any that is on, or where it is within."""
    asked, limits = dict(case.observed.requested or {}), case.limits
    if not limits.schedule_reason:
        return None
    target = bound_target(asked, case.observed, limits)
    if target == asked:
        return None
    reason = limits.schedule_reason
    return Intention(target, Origin.SCHEDULE, str(Origin.SCHEDULE), reason, case.now_s + HOUR_S)
