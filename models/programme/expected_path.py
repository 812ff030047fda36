"""What a job goes through under the expected load: its sizes step by step, and the late minutes that are expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from include.utc import MINUTE_S
from models.arrays import Floats
from models.programme.horizon import EXPECTED
from models.programme.load_paths import STEP_S
from models.programme.problem import Problem
from models.programme.window_tables import weigh_age

Decide = Callable[[int, int, float], int]
"""Step, place of the size that runs, age of the backlog -> place of the size in that step."""


def age_after(age_s: float, stop_s: Floats, length_s: float, ratio: Floats) -> Floats:
    """Return (K,) the age of the backlog after a step, of ``age_s`` at its beginning, under the expected load.

    A size is down for ``stop_s`` of its length, (K,); ``ratio``, (K,), is capacity over load.
    """
    return np.asarray(np.maximum(age_s + stop_s + (length_s - stop_s) * (1.0 - ratio), 0.0))


def expect_path(problem: Problem, age_s: float, steps: int, decide: Decide) -> tuple[Floats, tuple[int, ...]]:
    """Return the late minutes that are expected in each step, those that the programme prices, and the sizes.

    The backlog is the one that the expected load leads to.  In a step the load is spread as far as it is not known one
    step before: whatever else it becomes until then, the programme would answer.
    """
    sizes, levels, terms, ages = problem.sizes, problem.levels, problem.terms, problem.ages
    priced = problem if terms.late_price else replace(problem, terms=replace(terms, late_price=1.0))
    late_minutes, path = list[float](), [0]
    for step, steps_long in enumerate(levels.steps[:steps]):
        after = decide(step, path[-1], age_s)
        length_s, stop_s = steps_long * STEP_S, terms.rescale_s * (after != path[-1])
        first = len(ages) * (after != path[-1])
        late = priced.tabulate_step(step, after)[:, -1, first : first + len(ages)] @ weigh_age(age_s, ages)
        known = levels.chances[step][0 if step == 0 else EXPECTED]
        late_minutes.append(min(float(known @ late) / priced.terms.late_price, length_s / MINUTE_S))
        ratio = np.exp(sizes.log_capacity[after, step] - known @ levels.log_load[step])
        age_s = float(age_after(age_s, np.array(stop_s), length_s, ratio))
        path.append(after)
    return np.array(late_minutes), tuple(path[1:])
