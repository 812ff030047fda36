"""The programme: at each step a job stays or goes to another size, whatever its load and its backlog have become.

    stay_j(k, z, a) = E_z'|z [ slots(k) + late(k, z', a) + E V_{j+1}(k, z', a') ]
    go_j(k, z, a)   = the same after the stop of a rescale
    V_j = min( stay_j(k), min over k' of rescale + go_j(k') )

k is the size, z the standardised level of the load, a the age of the backlog: the time in which as much would arrive.
Finite horizon, solved backwards (Bellman); at its end a backlog costs the time that it takes to work off.  One reward
for all: slots, late minutes and rescales in the prices of ``[planner.costs]``, and where they are set a budget's price
of slots, schedules of slots and the recovery goal (``Problem.held``).

A rescale waits before it stops the job, which goes on at its size meanwhile: for a checkpoint, and for slots where they
are missing.  Deviation: at later steps the size to go to is chosen at the stop; what is decided now, and each step of a
plan, is priced as it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.programme.error_shapes import Weights
from models.programme.horizon import EXPECTED, LoadLevels
from models.programme.problem import Costs, CostsToGo, CostTerms, Problem, Sizes
from models.programme.waits import BestChanges, price_changes
from models.programme.window_tables import WORK_OFF, weigh_age


@dataclass(frozen=True, slots=True)
class Solution:
    """The programme of a job, solved.

    Attributes:
        problem: of the job.
        age_s: of the oldest record now.
        costs: of staying and going at each step.
    """

    problem: Problem
    age_s: float
    costs: Costs

    @property
    def values(self) -> CostsToGo:
        """What staying and going cost from now on."""
        problem, now = self.problem, weigh_age(self.age_s, self.problem.ages)
        going = price_changes(problem, self.costs, step=0, place=0, begin=now[None, None])[0]
        return CostsToGo(float(self.costs[0][0][0, 0] @ now), going + problem.terms.rescale_price)

    def decide(self, step: int, place: int, age_s: float) -> int:
        """Return the size after a step's begin, not the first, where a change could stop the job; load as expected."""
        weights = weigh_age(age_s, self.problem.ages)
        stay, go = (one[:, EXPECTED] for one in self.costs[step])
        after = go @ weights + self.problem.terms.rescale_price
        best = int(after.argmin())
        return best if after[best] < stay[place] @ weights else place


def solve_programme(sizes: Sizes, levels: LoadLevels, shape: Weights, age_s: float, terms: CostTerms) -> Solution:
    """Return the programme of K sizes, solved; the shape is of the transients, the age of the oldest record."""
    problem = Problem(sizes, levels, shape, terms)
    return Solution(problem, age_s, {step: (stay, go) for step, stay, go in walk_back(problem)})


def walk_back(problem: Problem) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each step of the programme, the last one first, with what staying and going cost from there on.

    Both are (K, Z, A) by size, by the level of the load in the step before and by age; of the first step Z is 1, since
    the load is known.  Going is from the stop on, without the price of the rescale.
    """
    levels, terms, ages, places = problem.levels, problem.terms, problem.ages, problem.places
    changes, count = BestChanges(problem), len(ages)
    unserved = terms.late_price * WORK_OFF / 60 * np.maximum(ages - terms.late_after_s, 0.0)
    # (K, Z, 1 + R, A + 1) of deciding, and of waiting for slots; the last age takes the price of late minutes
    value = np.ones((*places.shape[1:], 1 + len(changes.rests_s), count + 1), np.float32)
    value[..., :count] = unserved
    for step in range(len(levels.steps) - 1, -1, -1):
        table, chances, held = problem.tabulate_step(step), levels.chances[step].astype(np.float32), problem.held[step]
        both = np.matmul(chances, np.matmul(value[..., :1, :], table)[..., 0, :]) + held
        stay, go = both[..., :count], both[..., count:]
        yield step, stay, go
        if step:
            on = value[..., 1 + levels.steps[step] :, :]  # of rests that are longer than the step
            if on.size:
                passed = np.matmul(on, table[..., :count])
                waiting = np.matmul(chances, passed.reshape(*places.shape[1:], -1)) + held
                value[..., 1 : 1 + passed.shape[2], :count] = waiting.reshape(passed.shape)
            changes.add_best(value[..., :count], stay, go, step)
