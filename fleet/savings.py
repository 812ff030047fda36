"""What a plan would save: slot-hours against staying as the job runs, over a named time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.facts import JobFacts


@dataclass(frozen=True, slots=True)
class PlanSaving:
    """Slot-hours of a plan against staying with the slots that run now.

    Attributes:
        slot_hours: saved; negative: added.
        of_slot_hours: that staying takes in the same time.
        until_s: end of that time, epoch seconds; it begins when the first step takes effect.
    """

    slot_hours: float
    of_slot_hours: float
    until_s: float

    @property
    def share(self) -> float | None:
        """Saved part of what staying takes."""
        return self.slot_hours / self.of_slot_hours if self.of_slot_hours else None


def saving_of(job: JobFacts, now_s: float) -> PlanSaving | None:
    """Return what the steps of a job's newest plan save from now on; None without steps whose times are known.

    A plan's own figure of a step (``slot_hours_saved``) is against the slots of the step before it, so the figures of
    several steps do not add up to what staying takes.
    """
    if job.slots_now is None or not job.steps:
        return None
    saved_s, length_s, until_s = 0.0, 0.0, now_s
    for step in job.steps:
        begin_s, end_s, slots = step.effective_at_s, step.valid_until_s, step.slots_to
        if begin_s is None or end_s is None or slots is None:
            return None
        seconds = max(end_s - max(begin_s, now_s), 0.0)
        saved_s, length_s, until_s = (
            saved_s + (job.slots_now - slots) * seconds,
            length_s + seconds,
            max(until_s, end_s),
        )
    return PlanSaving(saved_s / 3600, job.slots_now * length_s / 3600, until_s)


def sum_savings(savings: Sequence[PlanSaving]) -> PlanSaving | None:
    """Return the savings of several jobs together; None without any."""
    if not savings:
        return None
    total, of = sum(one.slot_hours for one in savings), sum(one.of_slot_hours for one in savings)
    return PlanSaving(total, of, max(one.until_s for one in savings))
