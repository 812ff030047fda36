"""Tidewise's reactive controller alone: no plan is ever made, the measured load decides."""

from __future__ import annotations

from models.evaluation.planner_driver import PlannerDriver
from models.evaluation.tick_snapshot import TickSnapshot
from models.policies.tidewise.reactive_controller import drop_plan
from models.policies.tidewise.tidewise_memory import ControllerMemory


class ControllerAlone(PlannerDriver):
    """The planner's driver without its plans."""

    def plan(self, snapshot: TickSnapshot, memory: ControllerMemory) -> ControllerMemory:  # noqa: ARG002
        """Return the memory without a plan."""
        return drop_plan(memory)
