"""The programme: at each step a job stays or goes to another size, whatever its load and its backlog have become.

    stay_j(k, z, a) = E_z'|z [ slots(k) + late(k, z', a) + E V_{j+1}(k, z', a') ]
    go_j(k, z, a)   = the same after the stop of a rescale
    V_j = min( stay_j(k), min over k' of rescale + go_j(k') )

k is the size, z the standardised level of the load, a the age of the oldest record.  Finite horizon, solved backwards
(Bellman); at its end a backlog costs the time that it takes to work off.  One reward for all: slots, late minutes and
rescales in the planner's own prices.

A rescale waits before it stops the job, which goes on at its size meanwhile: for a checkpoint, and for slots where they
are missing.  Deviation: at later steps the size to go to is chosen at the stop; what is decided now, and each step of a
plan, is priced as it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from include.utc import MINUTE_S
from models.arrays import Floats
from models.programme.error_shapes import Weights
from models.programme.horizon import LEVELS, Levels
from models.programme.load_paths import STEP_S
from models.programme.problem import Problem, Sizes, Terms, Values, code_spreads, tabulate
from models.programme.waits import Changes, price_changes
from models.programme.window_tables import GRID, WORK_OFF, find_places, list_ages, weigh_age


def solve(sizes: Sizes, levels: Levels, shape: Weights, age_s: float, terms: Terms) -> Values:
    """Return what staying and going cost from now on.

    Args:
        sizes: K of them.
        levels: of the load.
        shape: of the transients.
        age_s: of the oldest record now.
        terms: of the job.
    """
    problem = Problem(sizes, levels, shape, terms)
    costs = {step: (stay, go) for step, stay, go in walk_back(problem)}
    now = weigh_age(age_s, problem.ages)
    going = price_changes(problem, costs, step=0, place=0, begin=now[None, None])[0]
    return Values(float(costs[0][0][0, 0] @ now), going + terms.rescale_price)


def walk_back(problem: Problem) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each step of the programme, the last one first, with what staying and going cost from there on.

    Both are (K, Z, A) by size, by the level of the load in the step before and by age; of the first step Z is 1, since
    the load is known.  Going is from the stop on, without the price of the rescale.
    """
    levels, terms, ages, places = problem.levels, problem.terms, problem.ages, problem.places
    changes, count = Changes(problem), len(ages)
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


def age_after(age_s: float, stop_s: Floats, length_s: float, ratio: Floats) -> Floats:
    """Return (K,) the age of the backlog after a step under the expected load.

    Args:
        age_s: at its beginning.
        stop_s: (K,) during which a size is down.
        length_s: of the step.
        ratio: (K,) capacity over load.
    """
    return np.asarray(np.maximum(age_s + stop_s + (length_s - stop_s) * (1.0 - ratio), 0.0))


def expect_late_minutes(
    sizes: Sizes, levels: Levels, shape: Weights, age_s: float, terms: Terms, *, path: Sequence[int]
) -> Floats:
    """Return late minutes that are expected in each step of a path: those that the programme prices.

    The backlog is the one that the expected load leads to.  In a step the load is spread as far as it is not known one
    step before: whatever else it becomes until then, the programme would answer.

    Args:
        sizes: of the job, the running one first.
        levels: of the load.
        shape: of the transients.
        age_s: of the oldest record now.
        terms: of the job.
        path: the size in each step, as many steps as are asked for.
    """
    terms = replace(terms.at_once, late_price=terms.late_price or 1.0)
    ages, (sds, which) = np.array(list_ages(terms.late_after_s)), code_spreads(sizes)
    place, late_minutes = 0, []
    for step, after in enumerate(path):
        length_s, stop_s = levels.steps[step] * STEP_S, terms.rescale_s * (after != place)
        table = tabulate(sds, shape, terms if step == 0 else replace(terms, down_s=0.0), levels.steps[step])
        rows = which[after] * len(GRID) + find_places(levels.log_load[step] - sizes.log_capacity[after, step])
        late = table[rows].reshape(len(rows), -1, 2, len(ages))[:, -1, int(after != place)] @ weigh_age(age_s, ages)
        known = levels.chances[step][0 if step == 0 else LEVELS.index(0.0)]
        late_minutes.append(min(float(known @ late) / terms.late_price, length_s / MINUTE_S))
        ratio = np.exp(sizes.log_capacity[after, step] - known @ levels.log_load[step])
        age_s, place = float(age_after(age_s, np.array(stop_s), length_s, ratio)), after
    return np.array(late_minutes)
