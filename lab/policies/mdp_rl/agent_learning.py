"""From windows of a job to what its agents know: the same pure function learns online and from a night's history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.mdp_rl.learner import blend
from lab.policies.mdp_rl.mdp_rl_memory import JOB, AgentsMemory, Knowledge
from lab.policies.mdp_rl.mdp_rl_options import PAPER, LearningOptions
from lab.policies.mdp_rl.queueing import longest_path, response_s
from lab.policies.spread_selectivity import spread_selectivity
from models.arrays import Floats, Ints
from models.bundle.job_models import JobModels
from models.policies.observations import Observations
from models.topology import Edge, measure_edge_ratios, required_rates

LEAST_RATE_PER_S = 1e-9  # below it nothing comes; it keeps the quantum a number
FIRST_LEVEL = 20  # that of the first rate that is not 0: room for half as much again before the grid is coarsened


def measure_input_rates(
    observations: Observations, graph: JobGraph, edge_ratios: Mapping[Edge, float]
) -> dict[str, Floats]:
    """Return operator -> (W,) records/s that it has to process: what arrives at the sources, through the graph.

    An overloaded operator processes less than that, and the state must not look better because of it.  A source whose
    arrivals are not known counts with what it took in; NaN where that is not known either.
    """
    arrived = np.where(
        np.isfinite(observations.target_data_rate_per_s),
        observations.target_data_rate_per_s,
        observations.processing_rate_per_s,
    )
    return required_rates(graph, edge_ratios, {name: arrived[:, graph.position(name)] for name in graph.sources})


def estimate_ratios(graph: JobGraph, models: JobModels, observations: Observations) -> dict[Edge, float]:
    """Return the ratio of each edge: as measured in the windows, else as trained.

    Where neither knows it, an operator sends to each successor what it sends in all: one record for one (as in the
    paper) where that was never observed either.
    """
    assumed = spread_selectivity(graph, {name: models.selectivity.get(name, 1.0) for name in graph.names})
    measured: Mapping[Edge, float] = {}
    if observations.parallelism.shape[1] == len(graph.names):  # of this graph
        measured = measure_edge_ratios(
            graph, observations.processing_rate_per_s, observations.output_rate_per_s, observations.idle_share
        )
    return {
        edge: _first_finite(measured.get(edge, math.nan), models.edges.get(edge, whole), otherwise=1.0)
        for edge, whole in assumed.items()
    }


def _first_finite(*values: float, otherwise: float) -> float:
    return next((value for value in values if math.isfinite(value)), otherwise)


def measure_utilisation(observations: Observations, graph: JobGraph, offered: Mapping[str, Floats]) -> Floats:
    """Return (W, O) what is offered to an operator / what it could have processed as measured in the same window.

    The busy share takes its place where no true rate was measured; it is not the first choice because an operator that
    works off a backlog is always busy, whatever its rate and its parallelism.  NaN where neither is known.
    """
    rates = np.stack([np.broadcast_to(offered[name], len(observations)) for name in graph.names], axis=1)
    capacity = observations.true_processing_rate_per_s
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.where(capacity > 0, rates / capacity, observations.busy_share), float)


def measure_response_s(graph: JobGraph, busy: Floats, service_per_s: Mapping[str, float]) -> Floats:
    """Return (W,) response time of the job, infinite when an operator was overloaded; NaN when none was measured.

    Deviation: Flink reports no response time of an operator, so a window's is that of M/D/1 at the utilisation that
    was measured in it.

    Args:
        graph: the job.
        busy: (W, O) of :func:`measure_utilisation`.
        service_per_s: operator -> rate of an instance alone, as in the objective; others take no time.
    """
    service = np.array([service_per_s.get(name, np.nan) for name in graph.names])
    with np.errstate(invalid="ignore"):
        each = response_s(busy, service)
    observed = np.isfinite(busy) & ~np.isnan(each)
    response = longest_path(graph, {name: np.where(observed, each, 0.0)[:, at] for at, name in enumerate(graph.names)})
    return np.where(observed.any(axis=1), response, np.nan)


def measure_latency_s(observations: Observations) -> Floats:
    """Return (W,) the highest latency that was measured at any operator, s; NaN where none was."""
    known = np.isfinite(observations.latency_ms)
    highest = np.where(known, observations.latency_ms, 0.0).max(axis=1, initial=0.0)
    return np.where(known.any(axis=1), highest / 1000.0, np.nan)


def learn_operators(
    observations: Observations,
    graph: JobGraph,
    edge_ratios: Mapping[Edge, float],
    memory: AgentsMemory,
    *,
    target_utilisation: float,
    options: LearningOptions = PAPER,
) -> AgentsMemory:
    """Return the memory of decentralised agents, one per operator, after the windows that it has not read.

    Args:
        observations: windows, also ones that the memory has read.
        graph: of the job.
        edge_ratios: of its edges, of :func:`estimate_ratios`.
        memory: before.
        target_utilisation: U-bar; a window with a busier operator violates.
        options: how agents learn.
    """
    new, joined = _select_new_windows(observations, graph, memory)
    if not len(new):
        return memory
    rates = measure_input_rates(new, graph, edge_ratios)
    busy = measure_utilisation(new, graph, rates)
    late = np.where(np.isfinite(busy), busy > target_utilisation, np.nan)
    agents = {}
    for at, name in enumerate(graph.names):
        known = memory.agents.get(name, Knowledge())
        agents[name] = learn(known, rates[name], new.parallelism[:, [at]], late[:, at], joined, options=options)
    return replace(memory, last_window_s=int(new.window_start_s[-1]), agents={**memory.agents, **agents})


def learn_job(
    observations: Observations,
    graph: JobGraph,
    edge_ratios: Mapping[Edge, float],
    memory: AgentsMemory,
    *,
    service_per_s: Mapping[str, float],
    objective_s: float,
    measures_latency: bool = False,
    options: LearningOptions = PAPER,
) -> AgentsMemory:
    """Return the memory of the one agent of a centralised policy after the windows that it has not read.

    Args:
        observations: windows, also ones that the memory has read.
        graph: of the job.
        edge_ratios: of its edges, of :func:`estimate_ratios`.
        memory: before.
        service_per_s: operator -> rate of an instance alone, of those that the agent decides on and in the order of a
            configuration.
        objective_s: R_SLA; a window with a longer response time violates.
        measures_latency: take the latency measured in a window for its response time; else M/D/1.
        options: how the agent learns.
    """
    new, joined = _select_new_windows(observations, graph, memory)
    if not len(new):
        return memory
    rates = measure_input_rates(new, graph, edge_ratios)
    load = np.sum([rates[name] for name in graph.sources], axis=0)
    if measures_latency:
        response = measure_latency_s(new)
    else:
        response = measure_response_s(graph, measure_utilisation(new, graph, rates), service_per_s)
    violated = np.where(np.isnan(response), np.nan, response > objective_s)
    runs = new.parallelism[:, [graph.position(name) for name in service_per_s]]
    agent = learn(memory.agents.get(JOB, Knowledge()), load, runs, violated, joined, options=options)
    return replace(memory, last_window_s=int(new.window_start_s[-1]), agents={**memory.agents, JOB: agent})


def learn(
    known: Knowledge,
    rate_per_s: Floats,
    parallelism: Ints,
    violated: Floats,
    joined: Sequence[bool],
    *,
    options: LearningOptions = PAPER,
) -> Knowledge:
    """Return what an agent knows after W windows; window by window, so that it does not matter how they are batched.

    Args:
        known: before.
        rate_per_s: (W,) NaN where it is not known.
        parallelism: (W, N) of the operators that it decides on.
        violated: (W,) 1, 0, or NaN where it is not known.
        joined: (W,) whether a window follows on the one before without a gap.
        options: how the agent learns.
    """
    quantum, last = known.quantum_per_s, known.last_level
    counts = {(level, after): times for level, after, times in known.transitions}
    penalties = {(level, runs): estimate for level, runs, estimate in known.penalties}
    windows = zip(rate_per_s.tolist(), parallelism.tolist(), violated.tolist(), joined, strict=True)
    for rate, runs, sample, follows in windows:
        if not math.isfinite(rate) or rate < 0 or (quantum == 0 and rate < LEAST_RATE_PER_S):
            last = -1
            continue
        quantum = quantum or rate / FIRST_LEVEL
        while math.isinf(rate / quantum) or round(rate / quantum) >= options.levels:
            quantum, last = 2 * quantum, _coarsen(last)
            counts, penalties = _merge_counts(counts), _merge_penalties(penalties)
        level = round(rate / quantum)
        if last >= 0 and follows:
            counts[last, level] = counts.get((last, level), 0) + 1
            if math.isfinite(sample) and min(runs, default=0) > 0:
                key = (last, tuple(runs))
                penalty = options.weights.violation * sample
                penalties[key] = blend(penalties.get(key, 0.0), penalty, options.learning_rate)
        last = level
    return Knowledge(
        quantum,
        last,
        tuple((level, after, times) for (level, after), times in sorted(counts.items())),
        tuple((level, runs, estimate) for (level, runs), estimate in sorted(penalties.items())),
    )


def _coarsen(level: int) -> int:
    """Return a level on the grid of twice the quantum; an unknown one stays unknown."""
    return (level + 1) // 2 if level >= 0 else -1


def _merge_counts(counts: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    merged: dict[tuple[int, int], int] = {}
    for (level, after), times in sorted(counts.items()):
        key = (_coarsen(level), _coarsen(after))
        merged[key] = merged.get(key, 0) + times
    return merged


def _merge_penalties(
    penalties: Mapping[tuple[int, tuple[int, ...]], float],
) -> dict[tuple[int, tuple[int, ...]], float]:
    """Merge estimates; of two levels that become one, the worse is kept."""
    merged: dict[tuple[int, tuple[int, ...]], float] = {}
    for (level, runs), estimate in penalties.items():
        key = (_coarsen(level), runs)
        merged[key] = max(merged.get(key, 0.0), estimate)
    return merged


def _select_new_windows(
    observations: Observations, graph: JobGraph, memory: AgentsMemory
) -> tuple[Observations, list[bool]]:
    """Return the windows that the memory has not read, and whether each follows on the one before."""
    if observations.parallelism.shape[1] != len(graph.names):  # of another graph: nothing to be learnt
        return observations.rows(np.zeros(0, np.int64)), []
    new = observations.since(memory.last_window_s + 1)
    before = np.append([memory.last_window_s], new.window_start_s[:-1])[: len(new)]
    return new, (new.window_start_s - before == new.window_s).tolist()
