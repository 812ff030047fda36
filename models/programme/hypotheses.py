"""What the load may do next: hold its level, or be drawn to a path, faster or slower.

    level     m_t = m^- + kappa (y_t - m^-)
    forecast  E[y_{t+h}] = m_t + g (f_{t+h} - f_t) + g (1 - rho^h) (f_t - m_t)

y is the log load, f the log of a path, and m^- what the step before expected of this one (h = 1).

| g, rho | meaning |
| --- | --- |
| 0 | the level is held |
| 1, 1 | the path's shape at the measured height |
| 1, below 1 | back to the path, half of the way in ln 2 / -ln rho steps |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.programme.load_paths import SOURCES, STEP_S

_PULLS: Final = (0.5, 1.0)
_HALF_LIVES_MIN: Final = (45.0, 240.0, np.inf)
_GAINS: Final = (1.0, 0.4)
_HELD_GAINS: Final = (1.0, 0.4, 0.12, 0.04)
_ROWS: Final = [
    *product(range(len(SOURCES)), _PULLS, _HALF_LIVES_MIN, _GAINS),
    *((0, 0.0, np.inf, gain) for gain in _HELD_GAINS),
]

SOURCE: Final[Ints] = np.array([row[0] for row in _ROWS], np.int64)
PULL: Final[Floats] = np.array([row[1] for row in _ROWS], float)
"""(M,) g."""
KEEP: Final[Floats] = 2.0 ** (-STEP_S / 60 / np.array([row[2] for row in _ROWS], float))
"""(M,) rho, per step."""
GAIN: Final[Floats] = np.array([row[3] for row in _ROWS], float)
"""(M,) kappa."""
COUNT: Final = len(_ROWS)


def expect(level: Floats, path_then: Floats, path_at: Floats, leads: Sequence[int]) -> Floats:
    """Return E[y] of every hypothesis some steps ahead, (..., L, C, M).

    Args:
        level: (..., L, C, M) after the step that it is expected from.
        path_then: (..., L, C, S) the paths at that step.
        path_at: (..., L, C, S) the paths h steps later.
        leads: (L,) h.
    """
    then, changed = (np.take(one, SOURCE, axis=-1) for one in (path_then, path_at - path_then))
    drawn = np.array([PULL * (1.0 - KEEP**lead) for lead in leads])[:, None]  # (L, 1, M)
    expected: Floats = level + PULL * changed + drawn * (then - level)
    return expected


def expect_path(which: int, level: float, path: Floats) -> Floats:
    """Return (H,) E[y] of one hypothesis at leads 1..H, from its path at the step and after it, (1 + H,)."""
    pull, leads = PULL[which], np.arange(1, len(path))
    expected: Floats = level + pull * (path[1:] - path[0]) + pull * (1.0 - KEEP[which] ** leads) * (path[0] - level)
    return expected
