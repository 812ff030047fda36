"""The stochastic half of the state: input rates on a grid of levels, a Markov chain from slot to slot."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints


def transition_probabilities(counts: npt.ArrayLike) -> Floats:
    """Return p-hat of Eq. 5, (J, J) with rows that sum to 1; a level that was never left stays where it is."""
    observed = np.array(counts, float)
    unseen = np.flatnonzero(observed.sum(axis=1) == 0)
    observed[unseen, unseen] = 1.0
    return np.asarray(observed / observed.sum(axis=1, keepdims=True), float)


def walk(probability: Floats, slots: int, generator: np.random.Generator, start: int = 0) -> Ints:
    """Return (slots + 1,) levels of a new path of the chain that begins at ``start``."""
    reached = [np.flatnonzero(row) for row in probability]
    edges = [np.cumsum(row[at])[:-1].tolist() for row, at in zip(probability, reached, strict=True)]
    targets = [at.tolist() for at in reached]
    level, path = start, [start]
    for draw in generator.random(slots).tolist():
        level = targets[level][bisect_right(edges[level], draw)]
        path.append(level)
    return np.array(path, np.int64)
