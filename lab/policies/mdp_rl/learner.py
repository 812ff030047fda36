"""Algorithm 1 of the paper, slot by slot: act greedily, observe, update the estimates, sweep the values.

The agents of a real job are the same: they keep counts and estimates between decisions and have the values solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lab.policies.mdp_rl.bellman import best_value, solve, worth
from lab.policies.mdp_rl.mdp_rl_options import PAPER, Exploration, LearningOptions
from lab.policies.mdp_rl.rate_chain import transition_probabilities
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Settings of the sweeps that update the values.

    Deviation: Algorithm 1 sweeps in every slot.  With a known response model that changes nothing (average costs of a
    year with a sweep every 5 and every 100 slots agree to 1e-5); an agent that learns the response explores a little
    faster with more sweeps (0.166, 0.168, 0.171 for one every 5, 25, 100 slots).

    Attributes:
        eager: slots at the beginning with a sweep each.
        every: slots between two sweeps after that.
    """

    eager: int = 2000
    every: int = 25

    def due(self, slot: int) -> bool:
        """Return whether the values are swept after a slot, counted from 0."""
        return slot < self.eager or slot % self.every == 0


CENTRALISED_SWEEPS = Sweeps(2000, 25)
DECENTRALISED_SWEEPS = Sweeps(200, 10)


class AgentLearner:
    """Estimates and values of M independent agents that see the same rate; the arrays change in place.

    A centralised agent is M = 1 with the configurations of all operators on the axes between; decentralised agents
    share nothing but the rates they see, and are kept in one array only because that is fast.

    Deviation: the unknown cost is estimated per level and configuration after the action, (j, k + a), not per level,
    configuration and action: the response depends on nothing else, and 3^N times fewer estimates are learnt.

    Args:
        shape: (J, K1, ..., M) levels, parallelisms, agents.
        axes: those of parallelism that an action moves along.
        resources: w_res * share of each configuration, broadcasting to ``shape[1:]``.
        violated: (J, K1, ..., M) whether a slot of that rate and configuration violates.  An agent with the response
            model reads it as it is; one without reads only the cell of the slot it is in.
        knows_response: whether the agents have the response model ("+").
        options: weights of the costs, gamma, alpha, exploration.
        sweeps: when values are updated.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        resources: Floats,
        violated: Floats,
        *,
        knows_response: bool,
        options: LearningOptions = PAPER,
        sweeps: Sweeps = CENTRALISED_SWEEPS,
    ) -> None:
        self.axes, self.options, self.weights, self.discount = axes, options, options.weights, options.discount
        self.sweeps, self.knows_response, self.slot = sweeps, knows_response, 0
        weights = options.weights
        self.resources = weights.resources * np.broadcast_to(resources, shape[1:])
        self.penalty = weights.violation * violated.reshape(shape)
        self.counts = np.zeros((shape[0], shape[0]), np.int64)
        self.unknown = np.zeros(shape)  # c-hat_u of Eq. 6; 0 is optimistic, which is all the exploration there is
        self.tried = np.zeros(shape, bool)
        self.values = np.zeros(shape)
        self.after = np.zeros(shape)  # G, flat per level as the greedy choice reads it
        self.after += self.resources
        self._flat = self.after.reshape(shape[0], -1)
        self._unknown_flat = self.unknown.reshape(shape[0], -1)
        self._tried_flat = self.tried.reshape(shape[0], -1)
        self._penalty_flat = self.penalty.reshape(shape[0], -1)

    def choose(self, level: int, reachable: Ints, fee: Floats) -> Ints:
        """Return the greedy action of each agent.

        Args:
            level: of the rate.
            reachable: (actions, M) positions in the flattened configurations, staying first.
            fee: (actions, 1) cost of each action.
        """
        return np.asarray((self._flat[level].take(reachable) + fee).argmin(axis=0))

    def observe(self, level: int, next_level: int, position: Ints | int) -> None:
        """Take in a slot: the rate before, the rate of the slot, and the flat configuration(s) that it was run with.

        A violation belongs to the rate that came, which the action could not know; so it is an expectation over p.
        """
        self.counts[level, next_level] += 1
        if not self.knows_response:
            estimates = self._unknown_flat[level]
            penalty = self._penalty_flat[next_level][position]
            estimates[position] = blend(estimates[position], penalty, self.options.learning_rate)
            self._tried_flat[level, position] = True
        if self.sweeps.due(self.slot):
            self.sweep()
        self.slot += 1

    def sweep(self) -> None:
        """Do one sweep of value iteration with the present estimates (lines 6 to 10)."""
        probability = transition_probabilities(self.counts)
        if self.knows_response:
            expected = self.penalty + self.discount * self.values
            self.after[...] = worth(np.broadcast_to(self.resources, self.after.shape), probability, expected, 1.0)
        else:
            self.after[...] = worth(self.estimates() + self.resources, probability, self.values, self.discount)
        self.values = best_value(self.after, self.weights.reconfiguration, self.axes)

    def solve(self) -> None:
        """Sweep until the values are known; what an agent does that decides rarely and keeps no values."""
        probability, fee = transition_probabilities(self.counts), self.weights.reconfiguration
        if self.knows_response:
            flat = self.penalty.reshape(len(probability), -1)
            cost = self.resources + (probability @ flat).reshape(self.penalty.shape)
        else:
            cost = self.resources + self.estimates()
        self.after[...], _ = solve(cost, probability, rescale_cost=fee, discount=self.discount, axes=self.axes)
        self.values = best_value(self.after, fee, self.axes)

    def estimates(self) -> Floats:
        """Return c-hat_u of every state, (J, K1, ..., M), of those never tried as the exploration has it."""
        if self.options.exploration is Exploration.OPTIMISTIC:
            return self.unknown
        least = np.maximum.accumulate(np.where(self.tried, self.unknown, 0.0), axis=0)
        for axis in self.axes:
            least = np.flip(np.maximum.accumulate(np.flip(least, axis), axis=axis), axis)
        return np.where(self.tried, self.unknown, least)


Number = TypeVar("Number", float, Floats)


def blend(estimate: Number, sample: Number, learning_rate: float) -> Number:
    """Return c-hat_u after one more slot, Eq. 6: (1 - alpha) c-hat_u + alpha c_u."""
    return (1.0 - learning_rate) * estimate + learning_rate * sample
