"""The horizon of the programme: fine steps first, coarse ones later, and the levels that the load may have in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.programme.error_shapes import transition
from models.programme.load_outlook import LoadOutlook

STEPS: Final = (1,) * 8 + (2,) * 5 + (4,) * 5 + (12,) * 4
"""(J,) evaluations in each step of the programme: 86 in all, 7 h 10 min of 5 minutes."""
LEVELS: Final = (-3.0, -2.0, -1.3, -0.65, 0.0, 0.65, 1.3, 2.0, 2.8, 3.8, 6.0)
"""(Z,) standardised levels of the load."""
EXPECTED: Final = LEVELS.index(0.0)
"""Place of the expected one."""
EVALUATIONS: Final = int(sum(STEPS))


@dataclass(frozen=True, slots=True)
class LoadLevels:
    """The load of each step of the programme.

    Attributes:
        steps: (J,) evaluations in each.
        log_load: (J, Z) log of the load at each level, records/s.
        chances: J arrays of probabilities of a level given the one before: (1, Z) of the first, then (Z, Z).
    """

    steps: tuple[int, ...]
    log_load: Floats
    chances: tuple[Floats, ...]


def spread_levels(outlook: LoadOutlook, steps: tuple[int, ...] = STEPS) -> LoadLevels:
    """Return the levels of the programme's steps: the highest expected load of each, the spread at its middle."""
    firsts = list_firsts(steps)
    middle = firsts + (np.array(steps) - 1) // 2
    top = np.maximum.reduceat(outlook.mean[: sum(steps)], firsts)
    sd = outlook.sd[middle]
    nodes = np.array(LEVELS)
    loads = np.maximum(np.exp(top[:, None] + sd[:, None] * nodes) - outlook.offset, 1e-9)
    chances = [transition(outlook.shape, LEVELS, 0.0)[:1]]
    for step in range(1, len(steps)):
        stays = 1.0 - outlook.pull * (1.0 - outlook.keep ** steps[step - 1])
        remains = min(max(stays * sd[step - 1] / sd[step], 0.0), 0.9995)
        # Rounded, so that tables are found again; near 1 what is left of it matters.
        rounded = round(remains, 2) if remains < 0.95 else round(remains * 500) / 500
        chances.append(transition(outlook.shape, LEVELS, min(rounded, 0.9995)))
    return LoadLevels(steps, np.log(loads), tuple(chances))


def least_of_steps(values: Floats, steps: tuple[int, ...] = STEPS) -> Floats:
    """Return (..., J) the least of (..., H) values in each step of the programme; one value holds for all."""
    if values.shape[-1] == 1:
        return np.repeat(values, len(steps), axis=-1)
    return np.asarray(np.minimum.reduceat(values[..., : sum(steps)], list_firsts(steps), axis=-1))


def list_firsts(steps: tuple[int, ...]) -> Ints:
    """Return (J,) the number of the evaluation at which each step begins."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)[:-1]])
