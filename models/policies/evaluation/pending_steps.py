"""Pending steps: the steps of a plan as they are kept until they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A step that is to be sent.

    Attributes:
        apply_at_s, valid_until_s: epoch seconds.
        parallelism: operator -> parallelism.
        load_most_per_s: upper end of the band that it was planned for, all sources together: q95 of its first bins.
        reason: of the plan.
        load_before_most_per_s: the same of the bin before it is in effect; 0 when the forecast does not show it.
    """

    apply_at_s: int
    valid_until_s: int
    parallelism: Mapping[str, int]
    load_most_per_s: float
    reason: str
    load_before_most_per_s: float = 0.0


def latest_due(steps: tuple[PendingStep, ...], now_s: int) -> tuple[PendingStep | None, tuple[PendingStep, ...]]:
    """Return the step that was due last, if one was, and those that lie ahead."""
    due_steps = [step for step in steps if step.apply_at_s <= now_s]
    return (due_steps[-1] if due_steps else None), steps[len(due_steps) :]
