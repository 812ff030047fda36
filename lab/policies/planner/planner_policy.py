"""The planner: forecast quantiles x capacity posteriors x recovery x rescale cost, solved exactly over the horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.reactive_controller import accept_plan, decide_reactively, decide_without_windows, drop_plan
from lab.scheduling.cost_model import CurrentState, compute_costs
from lab.scheduling.pending_steps import list_pending_steps
from lab.scheduling.planner_settings import PlannerSettings
from lab.scheduling.quantiles import quantile_at_level
from lab.scheduling.reason import explain_step
from lab.scheduling.segments import Segment
from lab.scheduling.shortage import find_short
from lab.scheduling.step_placing import JobConditions, Need, place_steps
from models.arrays import Floats, Ints
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.evaluation.window_memory import learn_windows
from models.policies.immediate_change import rescale_now
from models.policies.job_outlook import build_outlook
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Decision, Schedule, Situation
from models.policies.tidewise.capacity_doubts import find_doubts
from models.policies.tidewise.measurements import lag_s
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import Demand
from models.scheduling.even_shares import align_shares
from models.scheduling.expectation import Outlook
from models.scheduling.shortest_path import ShortestPaths, find_shortest_paths
from models.scheduling.slot_bounds import price_outside
from models.scheduling.slot_problem import CostTables, SlotProblem


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """One job's problem.

    Attributes:
        outlook: demand, capacity and recovery.
        configurations: (K, O) candidates, the running one first.
        costs: of the candidates.
        current, limits: (O,) running and highest admissible parallelism.
    """

    outlook: Outlook
    configurations: Ints
    costs: CostTables
    current: Ints
    limits: Ints

    def solve(self, prices: Floats) -> ShortestPaths:
        """Return the cheapest path."""
        return find_shortest_paths(
            self.costs.cost_per_bin(prices)[None], self.costs.switch[None], np.zeros(1, np.int64)
        )


class PlannerPolicy:
    """Plans ahead with a usable forecast; between two plans, and without one, the reactive controller decides."""

    def first_memory(self) -> ControllerMemory:
        """Return the memory of a job that was never planned for."""
        return ControllerMemory()

    def decide(self, situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        """Return the steps of the horizon, and the memory with them for the evaluations until the next plan.

        Raises:
            DemandError: the forecast cannot be used.
            GraphError: forecast and graph do not belong together.
        """
        if situation.forecast.fallback is not None:
            return self._follow_load(situation, drop_plan(memory))
        job = build_problem(situation)
        prices = situation.slot_prices.of_job(situation.seed, job.outlook.demand.bins)
        made = schedule(situation, job, prices)
        known = learn_windows(memory, situation.graph, situation.observations)
        return made, accept_plan(known, list_pending_steps(made, situation.forecast))

    @staticmethod
    def _follow_load(situation: Situation, memory: ControllerMemory) -> tuple[Schedule, ControllerMemory]:
        decision, after = decide_reactively(situation.job, memory)
        reason = f"{situation.forecast.fallback}; {decision.reason}"
        return rescale_now(situation, decision.wanted or {}, reason), after

    def accept_plan(self, memory: ControllerMemory, left: ControllerMemory) -> ControllerMemory:
        """Return the memory after a newer plan; what the plan has learnt counts where no evaluation has seen more."""
        known = left if memory == self.first_memory() else memory
        if not left.planned:
            return drop_plan(known)
        if (left.seen_until_s or 0) > (known.seen_until_s or 0):  # evaluations missed what ingestion has seen
            known = replace(known, seen_until_s=left.seen_until_s, histories=left.histories)
        return accept_plan(known, left.due)

    def drop_plan(self, memory: ControllerMemory) -> ControllerMemory:
        """Return the memory of a job without a plan that counts: the measured load decides."""
        return drop_plan(memory)

    def evaluate(self, job: Snapshot, memory: ControllerMemory) -> tuple[ReactiveDecision, ControllerMemory]:
        """Return what a job should run at from now on."""
        return _keep_due(*decide_reactively(job, memory))

    def follow(self, memory: ControllerMemory, now_s: int) -> tuple[ReactiveDecision, ControllerMemory]:
        """Return the step of the plan that is due, for a job of which nothing was seen lately."""
        return _keep_due(*decide_without_windows(memory, now_s))


def _keep_due(decision: ReactiveDecision, after: ControllerMemory) -> tuple[ReactiveDecision, ControllerMemory]:
    """Return a decision whose step stays due until the job runs so or it expires: it may not have been carried out."""
    return decision, after if decision.due is None else replace(after, due=(decision.due, *after.due))


def price_slots(situation: Situation, memory: ControllerMemory) -> SlotProblem | None:  # noqa: ARG001 - as all do
    """Return the job's problem for the allocation of a cluster's slots; None where it follows the measured load."""
    if situation.forecast.fallback is not None:
        return None
    job = build_problem(situation)
    required = job.outlook.demand
    edges_s = required.start_s + required.bin_s * np.arange(required.bins + 1.0) - situation.as_of_s
    return SlotProblem(job.costs, np.maximum(edges_s, 0.0))


def build_problem(situation: Situation) -> ScheduleProblem:
    """Return the problem of a job."""
    job = build_outlook(situation)
    groups = situation.graph.slot_sharing_groups
    result = list_candidates(
        job.outlook.demand, job.outlook.bounds, job.current, job.limits, groups=groups, slots_max=situation.slots_max
    )
    configurations = align_shares(situation.graph, result, job.current)
    configurations = situation.bounds.add_within(configurations, situation.graph.names, groups, job.limits)
    now = CurrentState(situation.as_of_s, situation.slots_max, lag_s(situation.observations), groups)
    costs = compute_costs(job.outlook, configurations, now, PlannerSettings.of(situation.options))
    costs = _charge_outside(costs, situation, configurations, job.outlook.demand)
    return ScheduleProblem(job.outlook, configurations, costs, job.current, job.limits)


def _charge_outside(costs: CostTables, situation: Situation, configurations: Ints, required: Demand) -> CostTables:
    """Return the costs with what bins outside of the job's schedules cost."""
    edges_s = required.start_s + required.bin_s * np.arange(required.bins + 1.0)
    graph = situation.graph
    outside = situation.bounds.share_outside(configurations, graph.names, graph.slot_sharing_groups, edges_s)
    if outside is None:
        return costs
    price = price_outside(situation.options.costs)
    return replace(costs, bin_cost=costs.bin_cost + price * costs.minutes[:, None] * outside)


def schedule(situation: Situation, job: ScheduleProblem, prices: Floats) -> Schedule:
    """Return the steps of the cheapest path under prices of slots, (T,) per slot and minute."""
    path = job.solve(prices).choice[0]
    options, required = PlannerSettings.of(situation.options), job.outlook.demand
    chosen = job.configurations[path].T  # (O, T)
    load = quantile_at_level(required.load_per_s, options.load_quantile)
    short = find_short(job.outlook, chosen, job.limits, options.load_quantile)
    unmodelled = tuple(name for name in required.operators if name not in job.outlook.bounds)
    around = JobConditions(
        job.current,
        job.limits,
        Need(chosen, short, unmodelled, required.unknown),
        job.outlook,
        situation.as_of_s,
        options,
        grid_s=options.timing.apply_every_s,
        operators=situation.graph.operators,
        doubts=find_doubts(job.outlook, job.current, situation.observations),
    )
    steps = place_steps(segments(path, job.configurations), around)
    since = [0, *(step.begin for step in steps[:-1])]
    reasons = [
        explain_step(step, first, around, load, is_weighed=True) for step, first in zip(steps, since, strict=True)
    ]
    short_of = [bool(prices[step.begin : step.end].max(initial=0.0) > 0) for step in steps]
    reasons = [
        f"{reason}; the cluster's slots are short then" if one else reason
        for reason, one in zip(reasons, short_of, strict=True)
    ]
    return Schedule(situation.graph.names, tuple(map(Decision, steps, reasons)))


def segments(path: Ints, configurations: Ints) -> list[Segment]:
    """Return the stretches of one candidate, (T,) indices into (K, O); the running one is the first candidate."""
    begins = np.concatenate([[0], np.flatnonzero(np.diff(path)) + 1])
    ends = np.append(begins[1:], len(path))
    return [
        Segment(int(begin), int(end), configurations[path[begin]], held=bool(begin == 0 and path[0] == 0))
        for begin, end in zip(begins, ends, strict=True)
    ]
