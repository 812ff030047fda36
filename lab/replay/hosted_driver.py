"""A policy of the catalogue in a replay: what the stages make for it is made here, and one host evaluates it.

A plan is made whenever the plan DAG would have made one, with what the nightly learning has left; what the controller
does with it and with the windows is :func:`models.hosting.host.evaluate_hosted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from include.policy_catalogue import Decides
from include.settings import Planner
from lab.policies.planner.planner_policy import PlannerPolicy
from lab.replay.tick_snapshot import TickSnapshot
from lab.scheduling.pending_steps import list_pending_steps
from lab.scheduling.planner_settings import PlannerSettings
from models.hosting.host import HostedPolicy, HostMemory, Plan, answers_alarms, evaluate_hosted
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Policy, Situation
from models.policies.situations import build_live_situation

OBSERVED_H = 0.5  # what a policy that replans reads anew: the windows since the last evaluation, and some for a stop


@dataclass(frozen=True, slots=True)
class PipelineMemory:
    """What the tables of a pipeline hold of a job.

    Attributes:
        host: of the last evaluation.
        left: what the policy remembers from plan to plan.
        plan: the newest one; None before the first.
        learned_s: as of which training the policy last learned by night.
    """

    host: HostMemory
    left: Any
    plan: Plan | None = None
    learned_s: int | None = None


@dataclass(frozen=True, slots=True)
class HostedDriver:
    """Makes plans when they are due and lets the host evaluate at every tick.

    Deviations: a single window may ask for as much as it likes, and a memory is kept as it is, not as text.

    Attributes:
        hosted: the policy.
        policy: the same, which makes the plans.
        changed: settings of the planner that are other than the run's, as ``costs.late_weight``.
        makes_plans: whether plans are made at all.
        knows_load: plans are made on the true load in place of its forecast.
    """

    hosted: HostedPolicy
    policy: Policy[Any]
    changed: Mapping[str, object] = field(default_factory=dict)
    makes_plans: bool = True
    knows_load: bool = False

    @classmethod
    def of(cls, name: str, chosen: Policy[Any], changed: Mapping[str, object] | None = None) -> HostedDriver:
        """Return the driver of a policy that is hosted as the one of this name in the catalogue."""
        return cls(HostedPolicy.of(name, chosen), chosen, changed or {})

    def first_memory(self) -> PipelineMemory:
        """Return the memory of a job that was never planned for."""
        return PipelineMemory(HostMemory(), self.policy.first_memory())

    @property
    def _is_planner(self) -> bool:
        """Whether it plans with usable forecasts alone, and is asked at ticks alone."""
        return isinstance(self.policy, PlannerPolicy)

    def _change(self, options: Planner) -> Planner:
        return PlannerSettings.of(options).with_values(self.changed) if self.changed else options

    def tick(self, snapshot: TickSnapshot, memory: PipelineMemory) -> tuple[Mapping[str, int] | None, PipelineMemory]:
        """Return what is wanted now."""
        options = self._change(snapshot.options)
        if snapshot.plan_due and self.makes_plans and not self.hosted.reacts:
            memory = self._plan(snapshot, options, memory)
        decides_now = self.hosted.reacts or self.hosted.replans
        job = self._observe(snapshot, options) if decides_now else None
        decision, after = evaluate_hosted(self.hosted, memory.host, snapshot.now_s, job, memory.plan)
        return decision.wanted, replace(memory, host=after)

    def look(self, snapshot: TickSnapshot, memory: PipelineMemory) -> Mapping[str, int] | None:
        """Return what is wanted between two ticks, of a job that falls behind; None to wait for the next."""
        if self._is_planner:  # it waits for the next tick
            return None
        job = snapshot.take(self._change(snapshot.options), 0.0, reads_models=self.hosted.replans)
        job = replace(job, observations=snapshot.looks)
        if not answers_alarms(self.hosted, job):
            return None
        decision, _ = evaluate_hosted(self.hosted, memory.host, snapshot.now_s, job, memory.plan)
        return decision.wanted

    def _observe(self, snapshot: TickSnapshot, options: Planner) -> Snapshot:
        """Return the job as the controller sees it now."""
        hours = OBSERVED_H if self.hosted.replans else options.observed_h
        reads_models = self.hosted.replans or self.hosted.reads_models
        return snapshot.take(options, hours, reads_models=reads_models)

    def _plan(self, snapshot: TickSnapshot, options: Planner, memory: PipelineMemory) -> PipelineMemory:
        """Return the memory with a plan made now; a job that cannot be planned for has one without steps."""
        situation = self._build_situation(snapshot, options)
        if situation is None:
            left = self.policy.first_memory() if self._is_planner else None  # it follows the measured load
            return replace(memory, plan=Plan(snapshot.now_s, left=left))
        known = self._learn_nightly(snapshot, memory)
        schedule, left = self.policy.decide(situation, known.left)
        steps = list_pending_steps(schedule, situation.forecast)
        return replace(known, left=left, plan=Plan(snapshot.now_s, steps, left if self.hosted.replans else None))

    def _build_situation(self, snapshot: TickSnapshot, options: Planner) -> Situation | None:
        """Return what the plan stage would give to the policy: tables up to the last ingestion.

        Deviation: a policy that reacts with the plans is asked without models and a forecast, too.
        """
        until_s = snapshot.ingested_s
        if self.hosted.decides is Decides.WITH_PLANS:
            job = snapshot.take(options, options.observed_h, until_s, reads_models=self.hosted.reads_models)
            is_visible = job.up and len(job.observations)
            return build_live_situation(job, reads_models=self.hosted.reads_models) if is_visible else None
        models, forecast = snapshot.models, snapshot.true_load if self.knows_load else snapshot.forecast
        if models is None or forecast is None or (self._is_planner and forecast.fallback is not None):
            return None
        job = snapshot.take(options, options.observed_h, until_s)
        # As the plan stage does, which plans for jobs as if they ran.
        return Situation(replace(job, models=models, up=True, restarting=False), forecast)

    def _learn_nightly(self, snapshot: TickSnapshot, memory: PipelineMemory) -> PipelineMemory:
        """Return the memory after the last night's learning, for a policy that learns by night."""
        learn = getattr(self.policy, "learn", None)
        if learn is None or snapshot.trained_s == memory.learned_s or snapshot.models is None:
            return memory
        learned = learn(snapshot.history())
        left = memory.left if learned == self.policy.first_memory() else learned
        return replace(memory, left=left, learned_s=snapshot.trained_s)
