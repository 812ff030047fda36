"""Inputs of the policies from a situation: capacities, and the rates since the last decision."""

from __future__ import annotations

import numpy as np

from lab.policies.mdp_rl.agent_learning import estimate_ratios, measure_input_rates
from lab.policies.mdp_rl.mdp_rl_memory import AgentsMemory
from models.arrays import Floats
from models.policies.protocol import History, Situation
from models.scheduling.need import CapacityBounds, job_bounds, upper_limits
from models.topology import required_rates


def modelled_capacities(job: Situation | History) -> dict[str, CapacityBounds]:
    """Return the capacities of the operators that have any, in topological order; the others keep what they have."""
    limits = upper_limits(job.graph, job.slots_max)
    result = job_bounds(job.graph, job.models.capacity, limits, job.options)
    return {name: result[name] for name in job.graph.names if name in result and _is_usable(result[name])}


def recent_rates(situation: Situation, memory: AgentsMemory) -> dict[str, Floats]:
    """Return operator -> the rates offered to it in the windows since the last decision, unknown ones left out."""
    return {name: _drop_unknown(rates) for name, rates in _input_rates(situation, memory.decided_window_s + 1).items()}


def recent_load(situation: Situation, memory: AgentsMemory) -> Floats:
    """Return the loads of the job, all sources together, in the windows since the last decision, if known."""
    offered = _input_rates(situation, memory.decided_window_s + 1)
    return _drop_unknown(np.sum([offered.get(name, np.zeros(0)) for name in situation.graph.sources], axis=0))


def per_record(situation: Situation) -> dict[str, float]:
    """Return operator -> records that it gets per record of all sources, in the sources' mix of the windows at hand."""
    graph, offered = situation.graph, _input_rates(situation, 0)
    totals = {name: float(_drop_unknown(offered.get(name, np.zeros(0))).sum()) for name in graph.sources}
    whole = sum(totals.values())
    mix = {name: total / whole if whole > 0 else 1.0 / len(totals) for name, total in totals.items()}
    needed = required_rates(graph, estimate_ratios(graph, situation.models, situation.observations), mix)
    return {name: float(rate) for name, rate in needed.items()}


def _is_usable(bounds: CapacityBounds) -> bool:
    return bool(np.isfinite(bounds.mean_per_s).all() and bounds.mean_per_s.max(initial=0.0) > 0)


def _drop_unknown(rates: Floats) -> Floats:
    return np.asarray(rates[np.isfinite(rates) & (rates >= 0)], float)


def _input_rates(situation: Situation, since_s: float) -> dict[str, Floats]:
    observations, graph = situation.observations, situation.graph
    if observations.parallelism.shape[1] != len(graph.names):  # of another graph
        return {}
    ratios = estimate_ratios(graph, situation.models, observations)
    return measure_input_rates(observations.since(since_s), graph, ratios)
