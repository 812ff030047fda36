"""The planner as the DAGs run it: hourly plans, and the safety net's look at every tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from models.evaluation.drivers import View
from models.policies.tidewise.reactive_controller import drop_plan, evaluate_job
from models.policies.tidewise.snapshot import Snapshot
from models.policies.tidewise.tidewise_memory import ControllerMemory
from models.policies.tidewise.tidewise_policy import Planner
from models.recovery import UNTRAINED

SEEN_H = 0.5  # what a look needs: the windows since the last one, and some for a restart in between


@dataclass(frozen=True, slots=True)
class PlannerDriver:
    """Plans when a plan is due, looks at every tick.

    Attributes:
        planner: the policy.
        changed: settings of the planner that are other than the run's.
    """

    planner: Planner = field(default_factory=Planner)
    changed: Mapping[str, object] = field(default_factory=dict)

    def first_memory(self) -> ControllerMemory:
        """Return the memory of a job that was never planned for."""
        return self.planner.first_memory()

    def tick(self, view: View, memory: ControllerMemory) -> tuple[Mapping[str, int] | None, ControllerMemory]:
        """Return what the look wants now."""
        if view.plan_due:
            memory = self.plan(view, memory)
        snapshot = Snapshot(
            now_s=view.now_s,
            graph=view.graph,
            running=view.running,
            up=view.up,
            restarting=view.restarting,
            observations=view.observations(SEEN_H),
            slots_max=view.slots_max,
            options=view.options.model_copy(update=dict(self.changed)),
            recovery=UNTRAINED if view.models is None else view.models.recovery,
        )
        told, after = evaluate_job(snapshot, memory)
        return told.wanted, after

    def plan(self, view: View, memory: ControllerMemory) -> ControllerMemory:
        """Return the memory after a plan; without models or a season of history there is none."""
        forecast = view.forecast
        if view.models is None or forecast is None or forecast.fallback is not None:
            return drop_plan(memory)
        situation = view.situation()
        options = situation.options.model_copy(update=dict(self.changed))
        return self.planner.decide(replace(situation, options=options), memory)[1]
