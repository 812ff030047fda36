"""What an objective costs before it is switched on: the programme with it and without, on one load and its failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from include.settings.planner import RECOVERS, JobGoals
from lab.replay.hosted_driver import HostedDriver
from models.arrays import Floats
from models.intervals import Estimate, estimate
from models.policies.registry import policy

WITH, WITHOUT = "objective", "objective_off"
"""Names of the two candidates in a replay."""
MONTH_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class ObjectiveCost:
    """What an objective takes more in a day; negative: less.

    Attributes:
        text: the objective, in a user's words.
        slot_hours, late_minutes, rescales: of a day; minutes are late by what is in force now.
        money_per_month: of the slots.
    """

    text: str
    slot_hours: Estimate
    late_minutes: Estimate
    rescales: Estimate
    money_per_month: Estimate


def build_drivers(goals: JobGoals, parameters: Mapping[str, object]) -> dict[str, HostedDriver]:
    """Return the programme with an objective and without.

    Args:
        goals: that are asked for.
        parameters: of the programme.
    """
    changed = {f"costs.{key}": value for key, value in goals.model_dump(exclude_none=True).items()}
    made = policy(RECOVERS, parameters or None)
    return {WITH: HostedDriver.of(RECOVERS, made, changed), WITHOUT: HostedDriver.of(RECOVERS, made)}


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


def compare_objective(
    text: str, with_it: Mapping[str, Floats], without: Mapping[str, Floats], price_per_slot_hour: float
) -> ObjectiveCost:
    """Return what an objective takes more.

    Args:
        text: the objective.
        with_it: ``slot_hours``, ``late_minutes`` and ``rescales`` of each day and seed, (D, S), with it.
        without: the same without it.
        price_per_slot_hour: money.
    """
    more = {name: with_it[name] - without[name] for name in ("slot_hours", "late_minutes", "rescales")}
    of_slots = more["slot_hours"] * price_per_slot_hour * MONTH_DAYS
    return ObjectiveCost(text, *(estimate(values) for values in (*more.values(), of_slots)))
