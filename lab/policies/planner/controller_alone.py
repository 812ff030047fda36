"""The reactive controller alone: no plan is made, the measured load decides at every evaluation."""

from __future__ import annotations

from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.planner_policy import PlannerPolicy
from lab.policies.planner.reactive_controller import drop_plan
from models.policies.evaluation.window_memory import learn_windows
from models.policies.immediate_change import hold
from models.policies.protocol import Schedule, Situation


class ControllerAlone(PlannerPolicy):
    """Is hosted as the planner, and leaves no step to the controller."""

    def decide(self, situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        """Return no step, and the memory with what the windows told."""
        known = learn_windows(memory, situation.graph, situation.observations)
        return hold(situation, "no plan is made: the measured load decides at every evaluation"), drop_plan(known)
