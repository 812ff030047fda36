"""The decision problems of a real job: its levels, service rates and bounds, from what was observed and modelled.

Deviation: the paper sets K_max to 5.  Here it is what the highest observed rate needs at the target
utilisation, within the job's limits.  Resources cost w_res * k / K_max: measured against a whole cluster an instance
would cost nothing beside a reconfiguration and no job would ever be scaled down.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.mdp_rl.learner import AgentLearner
from lab.policies.mdp_rl.mdp_rl_memory import Knowledge
from lab.policies.mdp_rl.mdp_rl_options import PAPER, LearningOptions
from lab.policies.mdp_rl.queueing import longest_path, response_s, utilisation
from lab.policies.mdp_rl.space import Configurations
from models.arrays import Bools, Floats, Ints
from models.scheduling.need import CapacityBounds

# One agent decides on all operators up to this many configurations, and (state, action) pairs per level.
MAX_CONFIGURATIONS = 1024
MAX_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class _Chain:
    """Transitions between the S observed levels, ascending: (S,) and (S, S)."""

    levels: Ints
    quantum_per_s: float
    counts: Ints

    @property
    def rates_per_s(self) -> Floats:
        return np.asarray(self.levels * self.quantum_per_s, float)


@dataclass(frozen=True, slots=True)
class MdpSolution:
    """A solved policy over S observed levels and C configurations.

    Attributes:
        levels: (S,) ascending.
        quantum_per_s: of a level.
        parallelism: (C, N) instances of each operator in each configuration.
        following: (S, C) the configuration after the best action.
    """

    levels: Ints
    quantum_per_s: float
    parallelism: Ints
    following: Ints

    def row(self, rate_per_s: float) -> int:
        """Return the row of a rate; a level that was never observed counts as the next higher one that was."""
        level = rate_per_s / self.quantum_per_s
        level = level if math.isinf(level) else round(level)
        return min(int(np.searchsorted(self.levels, level)), len(self.levels) - 1)

    def nearest(self, running: Ints) -> int:
        """Return the configuration nearest to what runs, (N,): each operator clipped to its bound."""
        away = np.abs(self.parallelism - np.minimum(running, self.parallelism.max(axis=0)))
        return int(away.sum(axis=1).argmin())


def bound_parallelism(bounds: CapacityBounds, top_rate_per_s: float, target_utilisation: float) -> int:
    """Return K_max of an operator: the smallest parallelism that carries a rate at the target, within its limit."""
    capacity = np.maximum.accumulate(np.nan_to_num(bounds.mean_per_s))
    enough = int(np.searchsorted(capacity * target_utilisation, top_rate_per_s, side="left"))
    return min(enough, len(capacity) - 1) + 1


def has_too_many(limits: Sequence[int]) -> bool:
    """Return whether a job has more configurations than one agent can decide on, so that its operators' agents do.

    The paper decentralises where the centralised problem "gets impractical", without saying when that is.
    """
    configurations = math.prod(limits)
    return configurations > MAX_CONFIGURATIONS or configurations * 3 ** len(limits) > MAX_PAIRS


def bound_job(
    known: Knowledge, bounds: Mapping[str, CapacityBounds], per_record: Mapping[str, float], target_utilisation: float
) -> tuple[int, ...]:
    """Return K_max of each operator at the highest load that was seen; see :func:`plan_job`."""
    top = float(_chain(known).rates_per_s[-1])
    return tuple(bound_parallelism(one, top * per_record[name], target_utilisation) for name, one in bounds.items())


def plan_operator(
    known: Knowledge,
    bounds: CapacityBounds,
    *,
    target_utilisation: float,
    knows_utilisation: bool,
    options: LearningOptions = PAPER,
) -> MdpSolution:
    """Return the policy of a decentralised agent, Eq. 2.

    Args:
        known: with at least one transition.
        bounds: capacity of the operator up to its limit.
        target_utilisation: U-bar.
        knows_utilisation: take U = rate / capacity; else what was learnt by Eq. 6.
        options: weights and discount.
    """
    chain = _chain(known)
    rates = chain.rates_per_s
    space = Configurations((bound_parallelism(bounds, float(rates[-1]), target_utilisation),))
    violated = _utilisation(rates, bounds, space.parallelism[:, 0]) > target_utilisation
    return _solve(known, chain, space, violated, knows_response=knows_utilisation, options=options)


def plan_job(
    known: Knowledge,
    bounds: Mapping[str, CapacityBounds],
    graph: JobGraph,
    *,
    per_record: Mapping[str, float],
    target_utilisation: float,
    objective_s: float,
    knows_response: bool,
    options: LearningOptions = PAPER,
) -> MdpSolution:
    """Return the policy of a centralised agent, Eq. 1, for the operators that ``bounds`` names, in that order.

    Args:
        known: with at least one transition.
        bounds: capacity of every operator that is decided on.
        graph: of the job.
        per_record: operator -> records that it gets per record of all sources.
        target_utilisation: that bounds K_max.
        objective_s: R_SLA.
        knows_response: take M/D/1; else what was learnt by Eq. 6.
        options: weights and discount.
    """
    chain = _chain(known)
    load = chain.rates_per_s
    space = Configurations(bound_job(known, bounds, per_record, target_utilisation))
    violated = _responses_s(load, bounds, graph, per_record, space.parallelism) > objective_s
    return _solve(known, chain, space, violated, knows_response=knows_response, options=options)


def objective_response_s(bounds: Mapping[str, CapacityBounds], graph: JobGraph, target_utilisation: float) -> float:
    """Return R_SLA of a job: its response time when every operator runs at the target utilisation.

    Deviation: the paper's 650 ms belong to its own service rates (M/D/1 at 3.3 tuple/s and rho = 0.70); a Flink
    operator serves a record in microseconds, so the objective is expressed as that utilisation.
    """
    service = service_per_s(bounds)
    return float(longest_path(graph, {name: response_s(target_utilisation, mu) for name, mu in service.items()}))


def service_per_s(bounds: Mapping[str, CapacityBounds]) -> dict[str, float]:
    """Return operator -> mu, the rate of an instance alone, from which the objective and every response are taken.

    What instances cost one another shows in the utilisation.  With a mu that fell with parallelism besides, more
    instances would lengthen the response, and an overloaded job could find all of them late and take the fewest.
    """
    return {name: max(float(one.mean_per_s[0]), 1e-9) for name, one in bounds.items()}


def _chain(known: Knowledge) -> _Chain:
    transitions = np.array(known.transitions, np.int64).reshape(-1, 3)
    levels = np.unique(transitions[:, :2])
    counts = np.zeros((len(levels), len(levels)), np.int64)
    counts[tuple(np.searchsorted(levels, transitions[:, :2]).T)] = transitions[:, 2]
    return _Chain(levels, known.quantum_per_s, counts)


def _responses_s(
    load: Floats,
    bounds: Mapping[str, CapacityBounds],
    graph: JobGraph,
    per_record: Mapping[str, float],
    parallelism: Ints,
) -> Floats:
    """Return (S, C) response time of the job at each load and configuration, the latter (C, N)."""
    each, service = {}, service_per_s(bounds)
    for at, (name, one) in enumerate(bounds.items()):
        runs = parallelism[:, at]
        each[name] = response_s(_utilisation(load * per_record[name], one, runs), service[name])
    return np.asarray(np.broadcast_to(longest_path(graph, each), (len(load), len(parallelism))))


def _utilisation(rates: Floats, bounds: CapacityBounds, parallelism: Ints) -> Floats:
    """Return (S, C) utilisation of an operator; one that has no capacity is overloaded by any record."""
    capacity = np.maximum(np.nan_to_num(bounds.mean_per_s[parallelism - 1]), 0.0)
    return utilisation(rates[:, None], 1, capacity)


def _solve(
    known: Knowledge,
    chain: _Chain,
    space: Configurations,
    violated: Bools,
    *,
    knows_response: bool,
    options: LearningOptions,
) -> MdpSolution:
    """Return the policy of the learner of Algorithm 1 that has seen what is known; ``violated`` is (S, C)."""
    shape = (len(chain.levels), *space.limits)
    axes = tuple(range(1, len(shape)))
    agent = AgentLearner(
        shape, axes, space.shares(), violated.astype(float), knows_response=knows_response, options=options
    )
    agent.counts[...] = chain.counts
    row = {level: at for at, level in enumerate(chain.levels.tolist())}
    for level, runs, estimate in known.penalties:
        if level in row and len(runs) == len(space.limits) and all(map(operator.le, runs, space.limits)):
            at = (row[level], *(one - 1 for one in runs))
            agent.unknown[at], agent.tried[at] = estimate, True
    agent.solve()
    following = space.greedy(agent.after, options.weights.reconfiguration)
    return MdpSolution(chain.levels, chain.quantum_per_s, space.parallelism, following)
