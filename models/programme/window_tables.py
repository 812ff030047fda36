"""One step of a job in closed form: late minutes and the age of the oldest record at its end.

While a job is down the age of its oldest waiting record runs with the clock; while it runs with load L and capacity C
the age changes by 1 - C / L per second (fluid, constant within the step).  Both depend on d = log(L / C) alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.programme.error_shapes import Weights, cumulate
from models.programme.load_paths import STEP_S

_BY_LOAD: Final = np.concatenate(
    [
        np.arange(-450, -150, 50),
        np.arange(-150, -60, 10),
        np.arange(-60, -25, 2.5),
        np.arange(-25, 25.01, 1.0),
        np.arange(27.5, 60.1, 2.5),
        np.arange(70, 151, 10),
        np.arange(200, 401, 50),
    ]
)
GRID: Final[Floats] = _BY_LOAD / 100.0
"""(D,) log(load / capacity), denser where they are about equal."""
_EDGES: Final[Floats] = (GRID[1:] + GRID[:-1]) / 2
WORK_OFF: Final = 3.0
"""Seconds late per second of backlog that is left at the end: worked off with a third more than the load."""


@lru_cache(maxsize=64)
def list_ages(late_after_s: float) -> tuple[float, ...]:
    """Return the grid of ages, s: dense around what is late, hours at its end."""
    own = [0.0, late_after_s / 3, 0.75 * late_after_s, late_after_s, 2 * late_after_s, 5 * late_after_s]
    return (*own, *(max(age, share * late_after_s) for age, share in ((1200.0, 15), (7200.0, 60), (43_200.0, 400))))


def find_places(log_ratio: Floats) -> Ints:
    """Return the places in ``GRID`` nearest to values of log(load / capacity)."""
    return np.searchsorted(_EDGES, log_ratio)


@lru_cache(maxsize=256)
def run_step(
    down_s: float, lost_s: float, late_after_s: float, length_s: float = float(STEP_S)
) -> tuple[Floats, Floats]:
    """Return late minutes of a step, (D, A), and the weights of the ages at its end, (D, A, A).

    Args:
        down_s: stop at the beginning of the step; what is longer than a step counts with it.
        lost_s: age that is added at once: what is processed again after a failure.
        late_after_s: the job is late while its oldest record is older.
        length_s: of the step.
    """
    ages = np.array(list_ages(late_after_s))
    rise = 1.0 - np.exp(-GRID)[:, None]
    begin = ages[None, :] + lost_s
    later, down = max(down_s - length_s, 0.0), min(down_s, length_s)
    late = np.maximum(down - np.maximum(late_after_s - begin, 0.0), 0.0)
    running, rest = begin + down, length_s - down
    is_late = running > late_after_s
    with np.errstate(divide="ignore", invalid="ignore"):
        until = np.where(rise > 0, (late_after_s - running) / np.maximum(rise, 1e-9), rest)
        rising = np.where(is_late, rest, rest - np.clip(until, 0.0, rest))
        falling = np.where(is_late, np.minimum(rest, (running - late_after_s) / np.maximum(-rise, 1e-9)), 0.0)
    late = (late + np.where(rise > 0, rising, falling) + later) / 60.0
    end = np.maximum(running + rest * rise, 0.0) + later
    late = late + WORK_OFF * np.maximum(end - ages[-1], 0.0) / 60.0
    return late, weigh_ages(np.minimum(end, ages[-1]), ages)


def weigh_ages(age: Floats, ages: Floats) -> Floats:
    """Return (..., A) weights on the grid whose mean is the age."""
    low = np.clip(np.searchsorted(ages, age, side="right") - 1, 0, len(ages) - 2)
    share = np.clip((age - ages[low]) / (ages[low + 1] - ages[low]), 0.0, 1.0)
    weights = np.zeros((*np.shape(age), len(ages)))
    np.put_along_axis(weights, low[..., None], (1.0 - share)[..., None], axis=-1)
    np.put_along_axis(weights, low[..., None] + 1, share[..., None], axis=-1)
    return weights


def weigh_age(age_s: float, ages: Floats) -> Floats:
    """Return (A,) the weights of one age, at most the last of the grid: a plan asks for 88, each 5 us instead of 50."""
    age_s = min(age_s, ages[-1])
    low = min(max(int(ages.searchsorted(age_s, side="right")) - 1, 0), len(ages) - 2)
    share = min(max((age_s - ages[low]) / (ages[low + 1] - ages[low]), 0.0), 1.0)
    weights = np.zeros(len(ages))
    weights[low], weights[low + 1] = 1.0 - share, share
    return weights


@lru_cache(maxsize=512)
def _spread(sd: float, shape: Weights) -> Floats:
    """Return (D, D) probabilities of log(load / capacity) with a transient around the level's."""
    grid, total = cumulate(shape)
    edges = np.concatenate([[-np.inf], _EDGES, [np.inf]])
    below = np.interp((edges[None, :] - GRID[:, None]) / sd, grid, total, left=0.0, right=1.0)
    return np.asarray(np.diff(below, axis=1))


@lru_cache(maxsize=2048)
def run_steps(  # noqa: PLR0917 - what tables are cached by
    down_s: float,
    sd: float,
    shape: Weights,
    late_after_s: float,
    failure: tuple[float, float, float],
    steps: int,
    most_late: float,
) -> tuple[Floats, Floats]:
    """Return the tables of :func:`run_step` for several steps, averaged over transients and failures.

    Only the first step has the stop.  A job that is late is followed through all of them.  One that is not is looked
    at again at each step: after its first overload a change of its own would end it, for ``most_late`` at most.

    Args:
        down_s: of the first step.
        sd: of the transient of a step, with what is not known of the capacity.
        shape: of the transient.
        late_after_s: as there.
        failure: probability in a step, its downtime and the age that it adds, s.
        steps: how many.
        most_late: late minutes that are worth a change and back.
    """
    late, ends = run_step(down_s, 0.0, late_after_s)
    chance, fail_down_s, lost_s = failure
    if chance:
        fail_late, fail_ends = run_step(fail_down_s, lost_s, late_after_s)
        late, ends = (1 - chance) * late + chance * fail_late, (1 - chance) * ends + chance * fail_ends
    spread = _spread(sd, shape)
    late = spread @ late
    ends = (spread @ ends.reshape(len(GRID), -1)).reshape(ends.shape)
    if steps > 1:
        one_late, one_ends = run_steps(0.0, sd, shape, late_after_s, failure, 1, most_late)
        all_late, all_ends = late, ends
        for _ in range(steps - 1):
            all_late = all_late + np.matmul(all_ends, one_late[..., None])[..., 0]
            all_ends = np.matmul(all_ends, one_ends)
        is_calm = np.array(list_ages(late_after_s)) < late_after_s
        late = np.where(is_calm, late + np.minimum((steps - 1) * one_late, one_late + most_late), all_late)
        ends = np.where(is_calm[:, None], ends, all_ends)
    return late.astype(np.float32), ends.astype(np.float32)
