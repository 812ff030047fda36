"""The configurations of a job, and which of them one action reaches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True)
class Configurations:
    """All configurations of N operators, numbered in C order.

    Attributes:
        limits: K_max of each operator.
    """

    limits: tuple[int, ...]

    @cached_property
    def parallelism(self) -> Ints:
        """(C, N) instances of each operator."""
        return np.stack(np.unravel_index(np.arange(int(np.prod(self.limits))), self.limits), axis=1) + 1

    @cached_property
    def neighbours(self) -> Ints:
        """(C, 3^N) configurations that an action of {-1, 0, +1} per operator reaches, staying first.

        An action that would leave the bounds is no action of that state; it is shown as staying.
        """
        actions = sorted(product((-1, 0, 1), repeat=len(self.limits)), key=any)
        reached = self.parallelism[:, None, :] + np.array(actions)[None, :, :]
        allowed = ((reached >= 1) & (reached <= np.array(self.limits))).all(axis=2)
        retained = np.where(allowed[:, :, None], reached, self.parallelism[:, None, :])
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(retained - 1, 2, 0)), self.limits), np.int64)

    def number(self, parallelism: Ints) -> int:
        """Return the number of a configuration, (N,), each value within 1 .. its limit."""
        return int(np.ravel_multi_index(tuple(np.asarray(parallelism) - 1), self.limits))

    def shares(self) -> Floats:
        """Return (K1, K2, ...) instances of each configuration over those of the largest."""
        return np.asarray(self.parallelism.sum(axis=1) / sum(self.limits), float).reshape(self.limits)

    def greedy(self, after: Floats, rescale_cost: float) -> Ints:
        """Return (J, C) the configuration that is best to be in next, staying where it is as good.

        Args:
            after: (J, K1, K2, ...) G of :mod:`lab.policies.mdp_rl.bellman`.
            rescale_cost: w_rcf.
        """
        flat = after.reshape(len(after), -1)
        fee = np.full(self.neighbours.shape[1], rescale_cost)
        fee[0] = 0.0
        chosen = [np.argmin(row[self.neighbours] + fee, axis=1) for row in flat]  # by level: (J, C, 3^N) may be large
        return np.stack([self.neighbours[np.arange(len(choice)), choice] for choice in chosen])
