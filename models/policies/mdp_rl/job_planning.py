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
from models.arrays import Floats, Ints
from models.policies.mdp_rl.bellman import solve
from models.policies.mdp_rl.mdp_rl_memory import Knowledge
from models.policies.mdp_rl.mdp_rl_options import PAPER, LearningOptions
from models.policies.mdp_rl.queueing import longest_path, response_s, utilisation
from models.policies.mdp_rl.rate_chain import transition_probabilities
from models.policies.mdp_rl.space import Configurations
from models.scheduling.need import CapacityBounds

# A centralised agent decides on each operator by itself up to this many configurations, and (state, action) pairs per
# level.
MAX_CONFIGURATIONS = 1024
MAX_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class _Chain:
    """The chain of the S observed levels, ascending: (S,) and (S, S)."""

    levels: Ints
    quantum_per_s: float
    probability: Floats

    @property
    def rates_per_s(self) -> Floats:
        return np.asarray(self.levels * self.quantum_per_s, float)


@dataclass(frozen=True, slots=True)
class Plan:
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
        level = round(rate_per_s / self.quantum_per_s)
        return min(int(np.searchsorted(self.levels, level)), len(self.levels) - 1)

    def nearest(self, running: Ints) -> int:
        """Return the configuration nearest to what runs, (N,): each operator clipped to its bound.

        When all operators share one parallelism it is that of the largest.
        """
        away = np.abs(self.parallelism - np.minimum(running, self.parallelism.max(axis=0)))
        return int(np.lexsort((away.sum(axis=1), away[:, int(np.argmax(running))]))[0])


def bound_parallelism(bounds: CapacityBounds, top_rate_per_s: float, target_utilisation: float) -> int:
    """Return K_max of an operator: the smallest parallelism that carries a rate at the target, within its limit."""
    capacity = np.maximum.accumulate(np.nan_to_num(bounds.mean_per_s))
    enough = int(np.searchsorted(capacity * target_utilisation, top_rate_per_s, side="left"))
    return min(enough, len(capacity) - 1) + 1


def share_parallelism(limits: Sequence[int]) -> bool:
    """Return whether a centralised agent gives all operators one parallelism because they have too many combinations.

    Deviation: the paper leaves the centralised problem unsolved where it "gets impractical".
    """
    configurations = math.prod(limits)
    return configurations > MAX_CONFIGURATIONS or configurations * 3 ** len(limits) > MAX_PAIRS


def plan_operator(
    known: Knowledge,
    bounds: CapacityBounds,
    *,
    target_utilisation: float,
    knows_utilisation: bool,
    options: LearningOptions = PAPER,
) -> Plan:
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
    busy = _utilisation(rates, bounds, space.parallelism[:, 0])
    if knows_utilisation:
        penalty = _expected_penalty(chain.probability, busy > target_utilisation, options)
    else:
        penalty = _chain_of_counts(known, chain.levels, space, space.parallelism)
    return _solve(chain, space, space.parallelism, penalty, options)


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
) -> Plan:
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
    limits = tuple(
        bound_parallelism(one, float(load[-1]) * per_record[name], target_utilisation) for name, one in bounds.items()
    )
    space = Configurations((max(limits),)) if share_parallelism(limits) else Configurations(limits)
    parallelism = np.minimum(space.parallelism, limits)  # (C, N) also when one parallelism is shared
    if knows_response:
        late = _responses_s(load, bounds, graph, per_record, parallelism) > objective_s
        penalty = _expected_penalty(chain.probability, late, options)
    else:
        penalty = _chain_of_counts(known, chain.levels, space, parallelism)
    return _solve(chain, space, parallelism, penalty, options)


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
    counts = np.zeros((len(levels), len(levels)))
    counts[tuple(np.searchsorted(levels, transitions[:, :2]).T)] = transitions[:, 2]
    return _Chain(levels, known.quantum_per_s, transition_probabilities(counts))


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


def _expected_penalty(
    probability: Floats, violated: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], options: LearningOptions
) -> Floats:
    """Return (S, C) expected penalty when the next rate, which the action cannot know, decides."""
    return np.asarray(options.weights.violation * (probability @ violated), float)


def _utilisation(rates: Floats, bounds: CapacityBounds, parallelism: Ints) -> Floats:
    """Return (S, C) utilisation of an operator; one that has no capacity is overloaded by any record."""
    capacity = np.maximum(np.nan_to_num(bounds.mean_per_s[parallelism - 1]), 0.0)
    return utilisation(rates[:, None], 1, capacity)


def _chain_of_counts(known: Knowledge, levels: Ints, space: Configurations, parallelism: Ints) -> Floats:
    """Return (S, C) estimates c-hat_u; a state never tried is at least as bad as any lighter one that was.

    Deviation: the paper starts every state at 0, which makes the agent try all of them; on a job that serves users
    the monotone sharing of the author's later code keeps it from what it must know to be worse: more load, fewer
    instances.
    """
    row = {level: at for at, level in enumerate(levels.tolist())}
    own = np.full((len(levels), len(parallelism)), np.nan)
    for level, runs, estimate in known.penalties:
        seen = runs if len(runs) == len(space.limits) else (max(runs),)  # the latter: they share one parallelism
        if level in row and all(map(operator.le, seen, space.limits)) and len(seen) == len(space.limits):
            own[row[level], space.number(np.array(seen))] = estimate
    least = np.nan_to_num(own).reshape(len(levels), *space.limits)
    least = np.maximum.accumulate(least, axis=0)
    for axis in range(1, least.ndim):
        least = np.flip(np.maximum.accumulate(np.flip(least, axis), axis=axis), axis)
    return np.where(np.isnan(own), least.reshape(own.shape), own)


def _solve(chain: _Chain, space: Configurations, parallelism: Ints, penalty: Floats, options: LearningOptions) -> Plan:
    used = options.weights.resources * parallelism.sum(axis=1) / parallelism[-1].sum()
    cost = (used + penalty).reshape(len(chain.levels), *space.limits)
    fee = options.weights.reconfiguration
    after, _ = solve(cost, chain.probability, rescale_cost=fee, discount=options.discount)
    return Plan(chain.levels, chain.quantum_per_s, parallelism, space.greedy(after, fee))
