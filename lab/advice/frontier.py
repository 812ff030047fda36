"""The curves of a job's frontier: the programme under each named goal, other policies over their headroom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fleet.frontier import Point, PolicyCurve
from include.settings.planner import LATE_WEIGHT_FACTOR, RECOVERS, Planner
from lab.replay.candidate_policies import build_driver
from lab.replay.conditions import Conditions
from lab.replay.drivers import Driver
from lab.replay.hosted_driver import HostedDriver
from lab.replay.workload import Workload
from models.arrays import Floats
from models.policies.registry import policy

TITLES: Final = {
    RECOVERS: "Tidewise",
    "controller_alone": "its controller alone",
    "flink_autoscaler_tuned": "the operator's autoscaler, tuned",
}


def build_variants(
    planner: Planner, workload: Workload, conditions: Conditions
) -> Iterator[tuple[tuple[str, str], Driver[Any]]]:
    """Yield policy and label of each point with what decides there.

    Args:
        planner: settings of all jobs, whose ``late_weight`` the goals multiply.
        workload: of the job.
        conditions: of the job.
    """
    made, weight = policy(RECOVERS, conditions.parameters.get(RECOVERS) or None), planner.costs.late_weight
    for goal, factor in LATE_WEIGHT_FACTOR.items():
        yield (RECOVERS, goal), HostedDriver.of(RECOVERS, made, {"costs.late_weight": factor * weight})
    aims: dict[str, list[tuple[float, dict[str, object]]]] = {
        "controller_alone": [
            (used, {"reactive.unplanned_utilisation_target": used, "reactive.unplanned_utilisation_max": most})
            for used, most in ((0.7, 0.8), (0.85, 0.95), (0.95, 1.0))
        ],
        "flink_autoscaler_tuned": [(used, {"utilization_target": used}) for used in (0.7, 0.8, 0.9)],
    }
    for name, each in aims.items():
        for used, parameters in each:
            yield (name, f"aims at {used:.0%} used"), build_driver(name, parameters, workload, conditions)


def form_curves(took: Mapping[tuple[str, str], Mapping[str, Floats] | None]) -> tuple[PolicyCurve, ...]:
    """Return the curves of a job; a point whose policy failed is left out.

    Args:
        took: policy and label -> ``slot_hours``, ``late_minutes`` and ``rescales`` of each day.
    """
    result = []
    for name, title in TITLES.items():
        points = tuple(
            Point(label, *(round(float(np.mean(each[key])), 3) for key in ("slot_hours", "late_minutes", "rescales")))
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

    def add(policy: str, label: str) -> Point:
        each = [one[policy, label] for one in by_label]
        sums = (sum(getattr(one, name) for one in each) for name in ("slot_hours", "late_minutes", "rescales"))
        return Point(label, *sums)

    result = []
    for curve in listed[0] if listed else ():
        points = [add(curve.policy, one.label) for one in curve.points if (curve.policy, one.label) in common]
        result += [PolicyCurve(curve.policy, curve.title, tuple(points))] if points else []
    return tuple(result)
