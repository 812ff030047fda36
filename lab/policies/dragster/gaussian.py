"""Capacity of an operator: the posterior of a Gaussian process, Eq. 17 of Dragster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Kernel:
    """Squared exponential kernel s^2 exp(-(x - x')^2 / (2 l^2)).

    Attributes:
        length_scale: l, tasks.
        deviation: s, prior standard deviation in units of the normalised capacity.
        noise: sigma, standard deviation of one sample in the same units.
    """

    length_scale: float = 2.0
    deviation: float = 1.0
    noise: float = 0.03

    def __post_init__(self) -> None:
        if not min(self.length_scale, self.deviation, self.noise) > 0:
            raise ValueError("length_scale, deviation and noise must be positive")

    def between(self, left: npt.ArrayLike, right: npt.ArrayLike) -> Floats:
        """Return (n, m) covariances of (n,) and (m,) numbers of tasks."""
        distance = np.subtract.outer(np.asarray(left, float), np.asarray(right, float))
        return np.asarray(self.deviation**2 * np.exp(-0.5 * (distance / self.length_scale) ** 2), float)


@dataclass(frozen=True, slots=True)
class NormalisedSamples:
    """Normalised capacities of one operator; several with the same number of tasks may be given as their mean.

    Attributes:
        tasks: (m,) where it was sampled.
        mean: (m,) mean of the samples there.
        count: (m,) how many samples that is of.
    """

    tasks: Floats
    mean: Floats
    count: Floats

    @property
    def slope(self) -> float:
        """The line through the origin that fits the samples best, per task."""
        return float((self.count * self.tasks * self.mean).sum() / (self.count * self.tasks**2).sum())


@dataclass(frozen=True, slots=True)
class Posterior:
    """Capacity on a grid of tasks.

    Attributes:
        tasks: (n,) the grid.
        mean, deviation: (n,) mu and sigma of Eq. 17, normalised.
    """

    tasks: Ints
    mean: Floats
    deviation: Floats


def posterior(kernel: Kernel, tasks: npt.ArrayLike, samples: NormalisedSamples, *, slope: float = 0.0) -> Posterior:
    """Return the posterior of Eq. 17, about a prior mean slope * x.

    Deviation: Eq. 17 has a prior mean of zero (``slope`` 0), under which every number of tasks far from those tried is
    believed to be worth nothing.

    Args:
        kernel: prior and noise.
        tasks: (n,) where it is wanted.
        samples: at least one.
        slope: normalised capacity per task.
    """
    grid = np.asarray(tasks, np.int64)
    covariance = kernel.between(samples.tasks, samples.tasks) + np.diag(kernel.noise**2 / samples.count)
    factor = cho_factor(covariance, lower=True)
    cross = kernel.between(samples.tasks, grid)
    residual = cho_solve(factor, samples.mean - slope * samples.tasks)
    variance = kernel.deviation**2 - (cross * cho_solve(factor, cross)).sum(axis=0)
    return Posterior(grid, slope * grid + cross.T @ residual, np.sqrt(np.maximum(variance, 0.0)))
