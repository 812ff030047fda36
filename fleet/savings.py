"""What a plan would save: slot-hours and late minutes against the mean of the last weeks, over a named time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleet.facts import JobStatus
from include.domain.slots import count_paid
from include.utc import DAY_S, HOUR_S
from models.scheduling.figures import format_late

WEEKS_S = 21 * DAY_S


@dataclass(frozen=True, slots=True)
class PlanSaving:
    """Slot-hours and late minutes of a plan against what ran before.

    Attributes:
        slot_hours: saved; negative: added.
        of_slot_hours: that are compared with, over the same time.
        until_s: end of that time, epoch seconds; it begins when the first step takes effect.
        is_of_weeks: whether those are of the last weeks; else of staying with what runs now, which nothing was measured
            before.
        late_minutes, late_minutes_before: expected in that time, and in as much of the last weeks; None where one of
            them is not known.
    """

    slot_hours: float
    of_slot_hours: float
    until_s: float
    is_of_weeks: bool
    late_minutes: float | None
    late_minutes_before: float | None

    @property
    def share(self) -> float | None:
        """Saved part of what is compared with."""
        return self.slot_hours / self.of_slot_hours if self.of_slot_hours else None


def saving_of(
    job: JobStatus, now_s: float, days: Sequence[Mapping[str, Any]] = (), taskmanager_slots: int = 1
) -> PlanSaving | None:
    """Return what the steps of a job's newest plan save from now on; None without steps whose times are known.

    A plan's own figure of a step (``slot_hours_saved``) is against the slots of the step before it, so the figures of
    several steps do not add up. ``days`` are rows of ``gold.job_days`` of it; whole TaskManagers are paid.
    """
    days = [row for row in days if row["until"].timestamp() > now_s - WEEKS_S]
    measured_s = sum(row["measured_s"] or 0.0 for row in days)
    known_s = sum(row["late_known_s"] or 0.0 for row in days)
    now = None if job.slots_now is None else count_paid(job.slots_now, taskmanager_slots)
    usual = sum(row["slot_hours"] or 0.0 for row in days) * HOUR_S / measured_s if measured_s else now
    if usual is None or not job.steps:
        return None
    slot_s, length_s, until_s, late = 0.0, 0.0, now_s, list[float | None]()
    for step in job.steps:
        begin_s, end_s, slots = step.effective_at_s, step.valid_until_s, step.slots_to
        if begin_s is None or end_s is None or slots is None:
            return None
        seconds = max(end_s - max(begin_s, now_s), 0.0)
        slot_s += count_paid(slots, taskmanager_slots) * seconds
        length_s, until_s = length_s + seconds, max(until_s, end_s)
        late.append(step.late_minutes)
    is_known = known_s > 0 and None not in late
    before = sum(row["late_minutes"] or 0.0 for row in days) * length_s / known_s if is_known else None
    return PlanSaving(
        slot_hours=(usual * length_s - slot_s) / HOUR_S,
        of_slot_hours=usual * length_s / HOUR_S,
        until_s=until_s,
        is_of_weeks=measured_s > 0,
        late_minutes=sum(one for one in late if one is not None) if is_known else None,
        late_minutes_before=before,
    )


def sum_savings(savings: Sequence[PlanSaving]) -> PlanSaving | None:
    """Return the savings of several jobs together, late minutes of those where they are known; None without any."""
    if not savings:
        return None
    late = [(one.late_minutes, one.late_minutes_before) for one in savings]
    known = [(after, before) for after, before in late if after is not None and before is not None]
    return PlanSaving(
        slot_hours=sum(one.slot_hours for one in savings),
        of_slot_hours=sum(one.of_slot_hours for one in savings),
        until_s=max(one.until_s for one in savings),
        is_of_weeks=all(one.is_of_weeks for one in savings),
        late_minutes=sum(after for after, _ in known) if known else None,
        late_minutes_before=sum(before for _, before in known) if known else None,
    )


def describe_saving(one: PlanSaving, money: str = "") -> str:
    """Return what a plan saves: slot-hours and late minutes of both, against what, and until when.

    ``money`` is what the slot-hours are worth, where somebody has said it.
    """
    before = "the mean of the last weeks" if one.is_of_weeks else "with what runs now"
    amount = f"{abs(one.slot_hours):,.{1 if abs(one.slot_hours) < 100 else 0}f}"
    text = f"{amount} of {one.of_slot_hours:,.0f} slot-hours {'fewer' if one.slot_hours > 0 else 'more'}"
    if one.share is not None:
        text += f" ({-100 * one.share:+.0f}%)".replace("-", "\u2212")
    text = f"as many slot-hours as {before}" if abs(one.slot_hours) < 0.05 else f"{text} than {before}"
    text += f"{', ' if money else ''}{money}, until {datetime.fromtimestamp(one.until_s, UTC):%a %H:%M}Z"
    if one.late_minutes is not None and one.late_minutes_before is not None:
        text += f"; {format_late(one.late_minutes)} expected, {one.late_minutes_before:,.0f} before"
    return text
