"""What an objective costs before it is switched on: the programme with it and without, on one load and its failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from include.settings.planner import RECOVERS, JobGoals
from lab.replay.hosted_driver import HostedDriver
from models.policies.registry import policy

WITH: Final = "objective"
"""Name of the candidate in a replay."""


def build_with(goals: JobGoals, parameters: Mapping[str, object] | None) -> HostedDriver:
    """Return the programme with an objective.

    Args:
        goals: that are asked for.
        parameters: of the programme.
    """
    changed = {f"costs.{key}": value for key, value in goals.model_dump(exclude_none=True).items()}
    return HostedDriver.of(RECOVERS, policy(RECOVERS, parameters or None), changed)


def describe_goals(goals: JobGoals, probability: float) -> str:
    """Return an objective in a user's words.

    Args:
        goals: that are asked for.
        probability: of a recovery in time where the goals name none.

    >>> describe_goals(JobGoals(recovery_within_s=300.0), 0.95)
    'caught up within 5 min in 95% after a lost TaskManager'
    """
    parts = []
    if goals.late_after_s is not None:
        parts.append(f"late only after {goals.late_after_s:g} s")
    if goals.recovery_within_s is not None:
        chance = goals.recovery_probability or probability
        parts.append(f"caught up within {goals.recovery_within_s / 60:g} min in {chance:.0%} after a lost TaskManager")
    return " and ".join(parts)
