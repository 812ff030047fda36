"""What a plan would save: slot-hours against staying as the job runs, over a named time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.facts import JobFacts, StepFact


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
    if job.slots_now is None:
        return None
    spans = [_span_of(step, now_s) for step in job.steps]
    known = [one for one in spans if one is not None]
    if not known or len(known) < len(spans):
        return None
    hours = [(end - begin) / 3600 for begin, end, _ in known]
    saved = sum((job.slots_now - slots) * length for (*_, slots), length in zip(known, hours, strict=True))
    return PlanSaving(saved, job.slots_now * sum(hours), max(end for _, end, _ in known))


def sum_savings(savings: Sequence[PlanSaving]) -> PlanSaving | None:
    """Return the savings of several jobs together; None without any."""
    if not savings:
        return None
    total, of = sum(one.slot_hours for one in savings), sum(one.of_slot_hours for one in savings)
    return PlanSaving(total, of, max(one.until_s for one in savings))


def _span_of(step: StepFact, now_s: float) -> tuple[float, float, int] | None:
    if step.effective_at_s is None or step.valid_until_s is None or step.slots_to is None:
        return None
    begin_s = max(step.effective_at_s, now_s)
    return begin_s, max(step.valid_until_s, begin_s), step.slots_to
