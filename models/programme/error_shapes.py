"""How the errors of the load's forecast are distributed: a mixture of two-piece t distributions, whose tail is learnt.

Every shape has mean 0 and variance 1.  Below its mode it is a t distribution of one number of degrees of freedom, above
it of another one, so that bursts may be rare and high while falls are not.  A share of the mixture always has a heavy
upper tail: that no burst was seen yet is no evidence that none will come.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import stdtr

from models.arrays import Floats

# Degrees of freedom below and above the mode; 200 is as good as normal.
_FREEDOMS: Final = (
    (200.0, 200.0),
    (8.0, 8.0),
    (3.0, 3.0),
    (2.2, 2.2),
    (3.0, 200.0),
    (200.0, 3.0),
    (200.0, 2.2),
    (3.0, 2.2),
)
SHAPES: Final = len(_FREEDOMS)
_HEAVY: Final = 7
_HEAVY_SHARE: Final = 0.1
_PARTS: Final = 8  # weights are multiples of an eighth, so that tables are found again
_FARTHEST: Final = 30.0
_WIDTH: Final = 0.04  # over which a density is measured
_GRID: Final[Floats] = np.concatenate(
    [-np.geomspace(_FARTHEST, 4.0, 60)[:-1], np.linspace(-4.0, 4.0, 321), np.geomspace(4.0, _FARTHEST, 60)[1:]]
)
PRIOR: Final[Floats] = np.array([-6.0, -3.0, 0.0, -1.0, -3.0, -3.0, -3.0, 0.0])
"""(``SHAPES``,) log weights before any error was seen."""
Weights = tuple[int, ...]
"""Eighths of each shape."""


@lru_cache(maxsize=1)
def _tabulate() -> tuple[Floats, Floats, Floats]:
    """Return (N,) standardised errors, (SHAPES, N) probabilities up to them and (SHAPES, N) log densities there."""
    cumulated, densities = [], []
    dense = np.concatenate(
        [-np.geomspace(200.0, 6.0, 400)[:-1], np.linspace(-6.0, 6.0, 4801), np.geomspace(6.0, 200.0, 400)[1:]]
    )
    for low, high in _FREEDOMS:
        below, above = stdtr(low, dense), stdtr(high, dense)
        # Both halves have the same density at the mode.
        step = 1e-3
        at_low, at_high = (stdtr(nu, step) - 0.5 for nu in (low, high))
        share = at_high / (at_low + at_high)  # of the probability below the mode
        total = np.where(dense < 0, 2 * share * below, share + (1 - share) * (2 * above - 1))
        mass, middle = np.diff(total), (dense[1:] + dense[:-1]) / 2
        mass = mass / mass.sum()
        mean = float(mass @ middle)
        sd = float(np.sqrt(mass @ (middle - mean) ** 2))
        values = np.interp(_GRID * sd + mean, dense, total)
        values = (values - values[0]) / (values[-1] - values[0])
        cumulated.append(values)
        around = [np.interp((_GRID + side) * sd + mean, dense, total) for side in (-_WIDTH / 2, _WIDTH / 2)]
        densities.append(np.log(np.maximum((around[1] - around[0]) / _WIDTH, 1e-12)))
    return _GRID, np.array(cumulated), np.array(densities)


def score_shapes(error: Floats) -> Floats:
    """Return (..., SHAPES) the log density of standardised errors under each shape."""
    grid, _, densities = _tabulate()
    at = np.clip(error, grid[0], grid[-1])
    return np.stack([np.interp(at, grid, one) for one in densities], axis=-1)


def weigh_shapes(scores: Floats) -> Weights:
    """Return the weights of the mixture after errors, from the sums of their log densities, (SHAPES,)."""
    exact = np.exp(scores - scores.max())
    exact = (1 - _HEAVY_SHARE) * exact / exact.sum()
    exact[_HEAVY] += _HEAVY_SHARE
    parts = np.floor(exact * _PARTS)
    missing = int(_PARTS - parts.sum())
    parts[np.argsort(parts - exact * _PARTS, kind="stable")[:missing]] += 1
    if not parts[_HEAVY]:
        parts[parts.argmax()] -= 1
        parts[_HEAVY] = 1
    return tuple(int(part) for part in parts)


@lru_cache(maxsize=256)
def cumulate(weights: Weights) -> tuple[Floats, Floats]:
    """Return (N,) standardised errors and the (N,) probabilities of at most these, of a mixture."""
    grid, cumulated, _ = _tabulate()
    return grid, np.array(weights, float) / _PARTS @ cumulated


@lru_cache(maxsize=4096)
def transition(weights: Weights, nodes: tuple[float, ...], kept: float) -> Floats:
    """Return (Z, Z) probabilities of the next of ascending levels: ``kept``, 0..1, of this one and an error."""
    at = np.array(nodes)
    edges = (at[1:] + at[:-1]) / 2
    spread = np.sqrt(max(1.0 - kept * kept, 1e-6))
    grid, total = cumulate(weights)
    below = np.interp((edges[None, :] - kept * at[:, None]) / spread, grid, total)
    ends = np.zeros((len(at), 1))
    return np.asarray(np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1), np.float64)
