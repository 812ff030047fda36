"""Backlogs: when a job is scaled up to work one off, or already while it restarts, and when it is scaled back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from include.domain.slots import DEFAULT_GROUP
from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.planner.known_capacity import conttune_step, known_headroom, without_full
from lab.scheduling.cost_model import work_off_time_s
from lab.scheduling.planner_settings import PlannerSettings
from models.arrays import Floats
from models.policies.evaluation.reactive_decision import ReactiveDecision
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.full_operators import find_stuck, list_limits
from models.policies.tidewise.measurements import lag_s
from models.policies.tuning.reading import MeanMetrics
from models.scheduling.figures import format_count

_SCALING = (
    0.7  # share of linear scaling assumed for parallelisms not observed: twice as wide sustains 1.7 times as much
)
_ROUNDING = 1e-9


def work_off_backlog(
    snapshot: Snapshot, reading: MeanMetrics | None, memory: ControllerMemory
) -> tuple[ReactiveDecision | None, ControllerMemory]:
    """Scale a job with a backlog up where that costs less than its lateness, and back afterwards."""
    options, lag = PlannerSettings.of(snapshot.options), lag_s(snapshot.observations)
    if memory.back_to is not None:
        if lag > options.reactive.lag_s and not find_stuck(snapshot, reading, memory):
            return ReactiveDecision(None, f"works off a backlog of {lag:.0f} s"), memory
        return _bring_back(snapshot, reading, memory, memory.back_to)
    if not options.reactive.rescales_for_catch_up or lag <= options.costs.late_after_s:
        return None, memory
    wider = _cheapest_enlargement(snapshot, memory, lag, snapshot.recovery.downtime_rescale_s)
    if wider is None:
        return None, memory
    return ReactiveDecision(wider.parallelism, f"a backlog of {lag:.0f} s {wider.why}"), _remember(
        memory, snapshot, wider
    )


def await_restart(snapshot: Snapshot, memory: ControllerMemory) -> tuple[ReactiveDecision, ControllerMemory]:
    """Scale a job up while it restarts after a failure, where its backlog will be worth it; else wait for it.

    The backlog is not measured yet: it is expected from the downtime of a restart and the records processed again.
    """
    reactive, recovery = PlannerSettings.of(snapshot.options).reactive, snapshot.recovery
    is_wanted = reactive.rescales_for_catch_up and reactive.rescales_while_restarting
    if not (snapshot.restarting and is_wanted) or memory.back_to is not None:
        return ReactiveDecision(None, "the job is not running"), memory
    lag = max(lag_s(snapshot.observations), recovery.downtime_restart_s + recovery.checkpoint_interval_s)
    wider = _cheapest_enlargement(snapshot, memory, lag, 0.0)
    if wider is None:
        return ReactiveDecision(None, "the job restarts after a failure; its backlog is not worth enlarging it"), memory
    why = f"the job restarts after a failure; its backlog of some {lag:.0f} s {wider.why}"
    return ReactiveDecision(wider.parallelism, why), _remember(memory, snapshot, wider)


@dataclass(frozen=True, slots=True)
class _ScaleUp:
    """A configuration to work a backlog off with.

    Attributes:
        parallelism: operator -> parallelism.
        why: how long the backlog takes with both configurations, to follow "a backlog".
    """

    parallelism: Mapping[str, int]
    why: str


def _cheapest_enlargement(snapshot: Snapshot, memory: ControllerMemory, lag: float, stop_s: float) -> _ScaleUp | None:
    """Return the wider configuration that costs least until a backlog is worked off, both rescales included.

    None where staying costs less, and where the capacity of the job is not known.

    Args:
        snapshot: of the job.
        memory: of the job.
        lag: age of the oldest record, s.
        stop_s: downtime of the change itself.
    """
    options, running, limits = snapshot.options, snapshot.running, list_limits(snapshot)
    slots = snapshot.graph.slots_of(running)
    growable = [name for name in running if running[name] < limits.get(name, 0)]
    headroom_ratio = known_headroom(snapshot, memory, running)
    if headroom_ratio is None or not growable:
        return None
    base = max(running[name] for name in growable)
    factors = np.arange(base + 1, max(limits[name] for name in growable if running[name] == base) + 1) / base
    headroom_ratios = _headroom_at(snapshot, memory, factors, limits)
    sizes = _slots_at(snapshot, growable, factors)
    over_s = lag - options.costs.late_after_s
    stay_s = float(work_off_time_s(over_s, np.array(headroom_ratio)))
    go_s = stop_s + work_off_time_s(over_s + stop_s, headroom_ratios)
    extra = (sizes - slots) * options.costs.resource_weight / snapshot.slots_max
    costs = (
        2 * options.costs.rescale_weight
        + (extra * (go_s + options.timing.apply_every_s) + options.costs.late_weight * go_s) / 60
    )
    best = int(np.argmin(costs))
    if options.costs.late_weight * stay_s / 60 <= costs[best]:
        return None
    wanted = {
        name: min(math.ceil(running[name] * factors[best] - _ROUNDING), max(most, running[name]))
        for name, most in limits.items()
    }
    if wanted == dict(snapshot.running):  # every operator is as wide as it may be
        return None
    return _ScaleUp(wanted, f"would take {stay_s / 60:.0f} min to work off, enlarged {go_s[best] / 60:.0f} min")


def _slots_at(snapshot: Snapshot, growable: Sequence[str], factors: Floats) -> Floats:
    """Return (F,) the slots with the operators that may grow each grown by a factor."""
    group_of, running = snapshot.graph.group_of, snapshot.running
    total = np.zeros(len(factors))
    for group in {group_of.get(name, DEFAULT_GROUP) for name in running}:
        members = [name for name in running if group_of.get(name, DEFAULT_GROUP) == group]
        base = max((running[name] for name in members if name in growable), default=0)
        total += np.maximum(np.rint(base * factors), max(running[name] for name in members))
    return total


def _headroom_at(snapshot: Snapshot, memory: ControllerMemory, factors: Floats, limits: Mapping[str, int]) -> Floats:
    """Return (F,) capacity over load of the tightest operator with each grown by a factor, as far as its limit."""
    least = np.full(len(factors), np.inf)
    for name, share in memory.shares.items():
        alone = known_headroom(snapshot, replace(memory, shares={name: share}), snapshot.running)
        if alone is not None and snapshot.running.get(name):
            growth = np.minimum(factors, max(limits.get(name, 0) / snapshot.running[name], 1.0))
            least = np.minimum(least, alone * (1 + _SCALING * (growth - 1)))
    return least


def _remember(memory: ControllerMemory, snapshot: Snapshot, wider: _ScaleUp) -> ControllerMemory:
    return replace(memory, back_to=dict(snapshot.running), enlarged_to=dict(wider.parallelism))


def _bring_back(
    snapshot: Snapshot, reading: MeanMetrics | None, memory: ControllerMemory, back_to: Mapping[str, int]
) -> tuple[ReactiveDecision, ControllerMemory]:
    """Return to the configuration before the backlog, or to what the load needs where that one is too small now."""
    reactive = PlannerSettings.of(snapshot.options).reactive
    headroom_ratio = known_headroom(snapshot, without_full(snapshot, memory, back_to), back_to)
    fits = 1.0 if memory.planned else 1.0 / reactive.unplanned_utilisation_max
    if headroom_ratio is None or headroom_ratio >= fits:
        return ReactiveDecision(back_to, "the backlog is gone for which the job was enlarged"), forget_enlargement(
            memory
        )
    if reading is None:
        return ReactiveDecision(
            None, "there is no backlog any more; no undisturbed window yet shows what the load needs"
        ), memory
    wanted = conttune_step(snapshot, reading, memory)
    before = format_count(snapshot.graph.slots_of(back_to), "slot")
    why = f"the backlog is gone, and the load has outgrown the {before} of before"
    return ReactiveDecision(wanted, why), forget_enlargement(memory)


def forget_enlargement(memory: ControllerMemory) -> ControllerMemory:
    """Return the memory of a job that is not enlarged for a backlog."""
    return replace(memory, back_to=None, enlarged_to=None)
