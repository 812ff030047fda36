"""What a change of size waits for, in the programme: a checkpoint, and slots that are missing.

A wait of several steps is walked through them, at the size that runs; what is left of it within a step comes before the
stop, at the load that is expected in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.load_paths import STEP_S
from models.programme.problem import Costs, CostTerms, Problem
from models.programme.window_tables import run_step

_FALL_OR_RISE: Final = np.array([[0], [1]])


def count_waiting_steps(wait_s: float, steps: Sequence[int], step: int) -> tuple[int, float]:
    """Return how many whole steps a change waits that is asked for at a step, and how long in the one after them, s."""
    last = step
    while last + 1 < len(steps) and wait_s >= steps[last] * STEP_S:
        wait_s, last = wait_s - steps[last] * STEP_S, last + 1
    return last - step, wait_s


class BestChanges:
    """The best changes of the programme's later steps, of each size.

    Args:
        problem: that is solved.

    Attributes:
        rests_s: (R,) for how long a rise may still have to wait at the beginning of a step, the longest first; empty
            where no slots are waited for.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, terms = problem, problem.terms
        slots = problem.paid_slots
        longest_s = terms.wait_s + terms.slots_wait_s
        self.rests_s = np.arange(longest_s, -1e-9, -STEP_S).tolist() if terms.slots_wait_s else []
        order = np.argsort(slots, kind="stable")
        above = np.searchsorted(slots[order], slots, side="right")
        self._orders, self._ends = np.stack([order, order[::-1]], axis=1), np.stack([above - 1, len(slots) - above - 1])
        self._largest = above == len(slots)
        self._slot_cost = (terms.slot_price / 60 * slots).astype(np.float32)[:, None, None]  # a second

    def add_best(self, value: np.ndarray, stay: np.ndarray, go: np.ndarray, step: int) -> None:
        """Set what is best at the beginning of a step, not the first, from (K, Z, A) of staying and of a stop now.

        ``value``, (K, Z, 1 + R, A), is of the best decision, and of what is left of a wait for slots; rests that are
        longer than the step are given.
        """
        terms, steps = self._problem.terms, self._problem.levels.steps
        price = np.float32(terms.rescale_price)
        if not self.rests_s:
            np.minimum(stay, self._wait(go.min(axis=0)[None] + price, terms.wait_s, step), out=value[:, :, 0])
            return
        falls, rises = self.find_cheapest(go)
        walked = max(len(self.rests_s) - steps[step], 0)
        if not walked:
            value[:, :, 1] = self._wait(rises, self.rests_s[0], step)
        # Others are what a wait leaves that was walked through the step before.
        for column in range(max(walked, steps[step - 1]), len(self.rests_s)):
            new = np.float32(self.rests_s[0] - self.rests_s[column]) * self._slot_cost  # new slots in whole steps
            value[:, :, 1 + column] = self._wait(self.find_cheapest(go + new)[1] - new, self.rests_s[column], step)
        change = np.minimum(self._wait(falls, terms.wait_s, step), value[:, :, 1]) + price
        np.minimum(stay, change, out=value[:, :, 0])

    def find_cheapest(self, go: np.ndarray) -> np.ndarray:
        """Return (2, K, Z, A) the least cost of the sizes that need no more TaskManagers than each, and of the others.

        The least of 1, 2, 4, ... neighbours in the order of slots: a few operations on all sizes at once.
        """
        least, width = go[self._orders], 1
        while width < len(least):
            least[width:] = np.minimum(least[width:], least[:-width])
            width *= 2
        result = least[self._ends, _FALL_OR_RISE]
        result[1, self._largest] = 1e9
        return np.asarray(result)

    def _wait(self, cost: np.ndarray, wait_s: float, step: int) -> np.ndarray:
        """Return (K, Z, A) a cost after a wait within a step."""
        if not wait_s:
            return cost
        places = self._problem.expected[step]
        late, ends = _tabulate_wait(self._problem.terms, wait_s)
        after = np.matmul(cost[..., None, :], ends.take(places, axis=0, mode="clip"))[..., 0, :]
        return np.asarray(after + late.take(places, axis=0, mode="clip"))


@lru_cache(maxsize=256)
def _tabulate_wait(terms: CostTerms, wait_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (D, A) the price of the late minutes of a wait, and (D, A', A) the weights of the ages A' after it."""
    minutes, ends = run_step(0.0, 0.0, terms.late_after_s, wait_s)
    weights = np.ascontiguousarray(ends.swapaxes(1, 2), np.float32)
    return (terms.late_price * minutes).astype(np.float32), weights


def price_changes(problem: Problem, costs: Costs, *, step: int, place: int, begin: Floats) -> Floats:
    """Return (B, K) what going from a size to each costs from a step on, its wait included, the rescale's price not.

    ``begin``, (B, Z, A), are B distributions over the level of the load in the step before and the age.
    """
    slots, terms = problem.paid_slots.tolist(), problem.terms
    waits_s = [terms.find_wait_s(slots[place], count) for count in slots]
    ways = {wait_s: _price_way(problem, costs, (step, place), begin, wait_s) for wait_s in set(waits_s)}
    return np.stack([ways[wait_s][:, row] for row, wait_s in enumerate(waits_s)], axis=1)


def _price_way(problem: Problem, costs: Costs, start: tuple[int, int], at: Floats, wait_s: float) -> Floats:
    """Return (B, K) what :func:`price_changes` does for changes that all wait so long, from a step and a size on."""
    step, place = start
    levels, terms, slots, count = problem.levels, problem.terms, problem.paid_slots, len(problem.ages)
    whole, rest_s = count_waiting_steps(wait_s, levels.steps, step)
    spent, minutes = np.zeros(len(at)), sum(levels.steps[step : step + whole]) * STEP_S / 60
    for one in range(step, step + whole):
        passed = np.einsum("bza,zy->yba", at, levels.chances[one])
        run = np.matmul(passed, problem.tabulate_step(one, place)[..., :count].swapaxes(1, 2))  # (Z, B, A + 1)
        held = np.broadcast_to(problem.held[one][place], at.shape[1:])
        spent = spent + run[..., count].sum(axis=0) + np.einsum("bza,za->b", at, held)
        at = run[..., :count].swapaxes(0, 1)
    last = step + whole
    if rest_s > 0:
        places = problem.expected[last][place]
        late_min, ends = run_step(0.0, 0.0, terms.late_after_s, rest_s)
        spent = spent + terms.late_price * np.einsum("bza,za->b", at, late_min[places])
        at = np.einsum("bza,zac->bzc", at, ends[places])
    going = np.einsum("bza,kza->bk", at, costs[last][1])
    return np.asarray(going + spent[:, None] + terms.slot_price * minutes * (slots - slots[place]))
