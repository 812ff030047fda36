"""Tidewise's reactive controller alone: no plan is ever made, the measured load decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lab.policies.planner.planner_policy import PlannerPolicy
from lab.replay.ablations import PLANNER
from lab.replay.hosted_driver import HostedDriver


def drive_without_plans(changed: Mapping[str, object]) -> HostedDriver:
    """Return the planner's driver without its plans.

    Args:
        changed: settings of the planner that are other than the run's.
    """
    return replace(HostedDriver.of(PLANNER, PlannerPolicy(), changed), makes_plans=False)
