"""The planner as the DAGs run it: hourly plans, and the reactive controller at every tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from models.evaluation.tick_snapshot import TickSnapshot
from models.policies.tidewise.reactive_controller import drop_plan, evaluate_job
from models.policies.tidewise.snapshot import Snapshot
from models.policies.tidewise.tidewise_memory import ControllerMemory
from models.policies.tidewise.tidewise_policy import Planner
from models.recovery import UNTRAINED

OBSERVED_H = 0.5  # what an evaluation needs: the windows since the last one, and some for a restart in between


@dataclass(frozen=True, slots=True)
class PlannerDriver:
    """Plans when a plan is due, evaluates the reactive controller at every tick.

    Attributes:
        planner: the policy.
        changed: settings of the planner that are other than the run's, as ``costs.late_weight``.
    """

    planner: Planner = field(default_factory=Planner)
    changed: Mapping[str, object] = field(default_factory=dict)

    def first_memory(self) -> ControllerMemory:
        """Return the memory of a job that was never planned for."""
        return self.planner.first_memory()

    def tick(
        self, snapshot: TickSnapshot, memory: ControllerMemory
    ) -> tuple[Mapping[str, int] | None, ControllerMemory]:
        """Return what the reactive controller wants now."""
        if snapshot.plan_due:
            memory = self.plan(snapshot, memory)
        observed = Snapshot(
            now_s=snapshot.now_s,
            graph=snapshot.graph,
            running=snapshot.running,
            up=snapshot.is_up,
            restarting=snapshot.is_restarting,
            observations=snapshot.observations(OBSERVED_H),
            slots_max=snapshot.slots_max,
            options=snapshot.options.with_values(self.changed),
            recovery=UNTRAINED if snapshot.models is None else snapshot.models.recovery,
        )
        decision, after = evaluate_job(observed, memory)
        return decision.wanted, after

    def plan(self, snapshot: TickSnapshot, memory: ControllerMemory) -> ControllerMemory:
        """Return the memory after a plan; without models or a season of history there is none."""
        forecast = snapshot.forecast
        if snapshot.models is None or forecast is None or forecast.fallback is not None:
            return drop_plan(memory)
        situation = snapshot.situation()
        options = situation.options.with_values(self.changed)
        return self.planner.decide(replace(situation, options=options), memory)[1]
