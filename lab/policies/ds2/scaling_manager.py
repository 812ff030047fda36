"""DS2's scaling manager, Section 4.2 of DS2: when an optimum becomes a reconfiguration.

Per policy interval: judge the last reconfiguration, skip the warm-up, ask for the optimum, wait for the activation
time, ignore minor changes.  Roll-back and decision limit are described in the paper; its code has neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from include.domain.graph import JobGraph
from lab.policies.delayed_fall import delay_fall
from lab.policies.ds2.adjust import aggregate, is_significant, rate_ratio, scale_to_target, whole
from lab.policies.ds2.ds2_memory import ManagerState, PendingAction
from lab.policies.ds2.ds2_options import ManagerOptions
from lab.policies.ds2.optimum import OperatorRates, optimum
from models.topology import Edge

Outcome = Literal[
    "reconfigure",
    "roll-back",
    "between intervals",
    "warm-up",
    "activation",
    "minor",
    "rejected before",
    "limit",
    "past",
]
NO_CEILING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class PolicyInterval:
    """Measurements of one policy interval.

    Attributes:
        end_s: when it ended, epoch seconds.
        rates: operator -> its rates; a source's output rate is its target.
        achieved_per_s: source -> rate observed.
        backlog: source -> records that wait at the end; needed for a catch-up only.
        edge_ratios: of the edges as measured; None: an operator's whole output goes to every successor.
    """

    end_s: float
    rates: Mapping[str, OperatorRates]
    achieved_per_s: Mapping[str, float]
    backlog: Mapping[str, float] = field(default_factory=dict)
    edge_ratios: Mapping[Edge, float] | None = None


@dataclass(frozen=True, slots=True)
class ManagerDecision:
    """The manager's decision at the end of an interval.

    Attributes:
        outcome: why; ``past`` when the interval asks for a reconfiguration but lies too far back for one.
        parallelism: operator -> instances to run from now on; None when the job stays as it is.
    """

    outcome: Outcome
    parallelism: Mapping[str, int] | None = None


def advance(
    options: ManagerOptions,
    graph: JobGraph,
    interval: PolicyInterval,
    state: ManagerState,
    *,
    ceiling: Mapping[str, int] = NO_CEILING,
    is_latest: bool = True,
) -> tuple[ManagerDecision, ManagerState]:
    """Return the step at the end of an interval, and the memory after it.

    Args:
        options: the settings.
        graph: the job.
        interval: what was measured; one that ends too early for the policy interval is ignored.
        state: the memory.
        ceiling: operator -> most instances that it may have; decisions are cut to it.
        is_latest: whether the job can still be reconfigured at the end of this interval; one that is read later, with
            others after it, only counts towards warm-up and activation.
    """
    early = state.last_call_s is not None and interval.end_s - state.last_call_s < options.policy_interval_s
    if early:
        return ManagerDecision("between intervals"), state
    current = {name: interval.rates[name].parallelism for name in graph.names}
    targets = {name: interval.rates[name].true_output_per_s for name in graph.sources}
    known = _restart_intervals(options, replace(state, last_call_s=interval.end_s), sum(targets.values()))
    known = replace(known, intervals=known.intervals + 1)
    if known.intervals <= options.warm_up_intervals:
        return ManagerDecision("warm-up"), known
    share = _achieved_share(targets, interval.achieved_per_s)
    step: ManagerDecision | None
    if is_latest:
        step, known = _judge(options, current, share, known)
        if step is not None:
            return step, known
    wanted = _decision(options, graph, interval, current, targets)
    cut = {name: min(count, ceiling.get(name, count)) for name, count in wanted.items()}
    step, after = _activate(options, current, cut, share, known)
    if step.parallelism is None or is_latest:
        return step, after
    return ManagerDecision("past"), replace(known, decisions=_add_decision(options, known, cut))


def _decision(
    options: ManagerOptions,
    graph: JobGraph,
    interval: PolicyInterval,
    current: Mapping[str, int],
    targets: Mapping[str, float],
) -> dict[str, int]:
    """Return this interval's decision: the optimum, scaled when the target rate is missed although the optimum runs."""
    result = optimum(
        graph,
        _with_catch_up(options, interval),
        scaling_factor=options.scaling_factor,
        edge_ratios=interval.edge_ratios,
    )
    ratio = rate_ratio(targets, interval.achieved_per_s)
    if not options.shared_workers:
        return scale_to_target(current, result.parallelism, ratio, options.target_rate_ratio, fixed=graph.sources)
    known = any(math.isfinite(instances) for instances in result.raw.values())
    workers = whole(result.timely_workers_raw * (1.0 + options.scaling_factor)) if known else max(current.values())
    return scale_to_target(current, dict.fromkeys(graph.names, workers), ratio, options.target_rate_ratio)


def _with_catch_up(options: ManagerOptions, interval: PolicyInterval) -> Mapping[str, OperatorRates]:
    """Return the rates, those of sources with what works their backlog off within ``catch_up_s``."""
    if options.catch_up_s is None:
        return interval.rates
    extra = {name: backlog / options.catch_up_s for name, backlog in interval.backlog.items()}
    return {
        name: replace(rates, true_output_per_s=rates.true_output_per_s + extra.get(name, 0.0))
        for name, rates in interval.rates.items()
    }


def _restart_intervals(options: ManagerOptions, state: ManagerState, target_per_s: float) -> ManagerState:
    """Drop rejected and ineffective configurations once the target rate has changed."""
    before = state.target_per_s
    if not math.isfinite(target_per_s):
        return state
    if before is not None and abs(target_per_s - before) <= options.target_change * abs(before):
        return state
    return replace(state, target_per_s=target_per_s, rejected=(), fruitless=0, action=None)


def _achieved_share(targets: Mapping[str, float], achieved_per_s: Mapping[str, float]) -> float | None:
    """Return achieved / target rate over all sources; None when there is no target or a rate is not known."""
    target = sum(targets.values())
    share = sum(achieved_per_s.get(name, 0.0) for name in targets) / target if target > 0 else math.nan
    return share if math.isfinite(share) else None


def _judge(
    options: ManagerOptions, current: Mapping[str, int], share: float | None, state: ManagerState
) -> tuple[ManagerDecision | None, ManagerState]:
    """Judge the last reconfiguration, once: roll it back if the job got worse, count it if it helped too little."""
    action = state.action
    if action is None or share is None or action.achieved_share is None:
        return None, state
    judged = replace(state, action=None)
    if dict(action.after) != dict(current):
        return None, judged
    if share < action.achieved_share * (1.0 - options.degradation):
        rejected = (*judged.rejected, dict(action.after))
        return ManagerDecision("roll-back", dict(action.before)), _record_reconfiguration(
            replace(judged, rejected=rejected)
        )
    more = any(current[name] > action.before.get(name, 0) for name in current)
    fruitless = more and share < min(1.0, action.achieved_share * (1.0 + options.min_improvement))
    return None, replace(judged, fruitless=judged.fruitless + 1 if fruitless else 0)


def _activate(
    options: ManagerOptions,
    current: Mapping[str, int],
    wanted: Mapping[str, int],
    share: float | None,
    state: ManagerState,
) -> tuple[ManagerDecision, ManagerState]:
    """Wait for the activation time, then apply what the last decisions amount to, unless it is minor or forbidden."""
    decisions = _add_decision(options, state, wanted)
    known = replace(state, decisions=decisions)
    if len(decisions) < options.activation_intervals:
        return ManagerDecision("activation"), known
    chosen = aggregate(decisions, options.aggregation)
    if options.scale_down_delay_s:
        now_s = known.last_call_s or 0.0
        chosen, recent = delay_fall(known.recommended, now_s, current, chosen, options.scale_down_delay_s)
        known = replace(known, recommended=recent)
    if not is_significant(current, chosen, up=options.minor_up, down=options.minor_down):
        return ManagerDecision("minor"), known
    if chosen in [dict(one) for one in known.rejected]:
        return ManagerDecision("rejected before"), known
    if options.max_fruitless and known.fruitless >= options.max_fruitless:
        return ManagerDecision("limit"), known
    action = PendingAction(dict(current), chosen, share)
    return ManagerDecision("reconfigure", chosen), _record_reconfiguration(replace(known, action=action))


def _add_decision(
    options: ManagerOptions, state: ManagerState, wanted: Mapping[str, int]
) -> tuple[Mapping[str, int], ...]:
    return (*state.decisions, dict(wanted))[-options.activation_intervals :]


def _record_reconfiguration(state: ManagerState) -> ManagerState:
    return replace(state, intervals=0, decisions=(), reconfigurations=state.reconfigurations + 1)
