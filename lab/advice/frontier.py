"""The curves of a job's frontier: the programme under each named goal, other policies over their headroom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fleet.frontier import FrontierPoint, PolicyCurve
from include.settings.planner import LATE_WEIGHT_FACTOR, RECOVERS, Planner
from lab.backtest.daily_costs import DailyCosts
from lab.backtest.stretch import IsolatedDriver
from lab.replay.hosted_driver import HostedDriver
from models.policies.registry import policy

_RIVAL: Final = "flink_autoscaler_tuned"
TITLES: Final = {RECOVERS: "Tidewise", _RIVAL: "the operator's autoscaler, tuned"}
Key = tuple[str, str]
"""Policy and label of a point."""


def build_variants(planner: Planner, parameters: Mapping[str, Mapping[str, Any]]) -> dict[Key, IsolatedDriver]:
    """Return what decides at each point.

    Args:
        planner: settings of all jobs, whose ``late_weight`` the goals multiply.
        parameters: of policies.
    """
    programme, weight = policy(RECOVERS, parameters.get(RECOVERS) or None), planner.costs.late_weight
    made: dict[Key, HostedDriver] = {
        (RECOVERS, goal): HostedDriver.of(RECOVERS, programme, {"costs.late_weight": factor * weight})
        for goal, factor in LATE_WEIGHT_FACTOR.items()
    }
    for used in (0.7, 0.8, 0.9):
        rival = policy(_RIVAL, {"utilization_target": used})
        made[_RIVAL, f"aims at {used:.0%} used"] = HostedDriver.of(_RIVAL, rival)
    return {key: IsolatedDriver(driver) for key, driver in made.items()}


def form_curves(took: Mapping[Key, DailyCosts | None]) -> tuple[PolicyCurve, ...]:
    """Return the curves of a job; a point whose policy failed is left out."""
    result = []
    for name, title in TITLES.items():
        points = tuple(
            FrontierPoint(
                label, *(round(float(one.mean()), 3) for one in (each.slot_hours, each.late_minutes, each.rescales))
            )
            for (policy_name, label), each in took.items()
            if policy_name == name and each is not None
        )
        if points:
            result.append(PolicyCurve(name, title, points))
    return tuple(result)


def sum_curves(jobs: Iterable[Sequence[PolicyCurve]]) -> tuple[PolicyCurve, ...]:
    """Return what jobs take together, of the points that each of them has."""
    listed = list(jobs)
    by_label = [{(curve.policy, one.label): one for curve in curves for one in curve.points} for curves in listed]
    common = set.intersection(*map(set, by_label)) if by_label else set()

    def add(policy: str, label: str) -> FrontierPoint:
        each = [one[policy, label] for one in by_label]
        sums = (sum(getattr(one, name) for one in each) for name in ("slot_hours", "late_minutes", "rescales"))
        return FrontierPoint(label, *sums)

    result = []
    for curve in listed[0] if listed else ():
        points = [add(curve.policy, one.label) for one in curve.points if (curve.policy, one.label) in common]
        result += [PolicyCurve(curve.policy, curve.title, tuple(points))] if points else []
    return tuple(result)
