"""Capacity of operators that were observed little or never: the posterior under the fleet prior.

The log of capacity is a Gaussian process whose mean has uncertain parameters ("Gaussian Processes for Machine
Learning", 2.7); the curve of :mod:`models.capacity.fleet_prior` is linearised in the contention around the kind's mean.
An operator that was observed at one parallelism has its own level, whatever the fleet's, and the kind's contention; for
one that was never observed both come from the kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints
from models.capacity.fleet_prior import FleetPrior
from models.capacity.gp import kernel

# Prior of the level of an operator that was observed: flat, over a factor of e^10 to both sides.
FLAT_LEVEL_SD: Final = 10.0


@dataclass(frozen=True, slots=True)
class _LogCapacity:
    """Prior process of the log capacity of B operators.

    Attributes:
        mean: (B, 2) of level and contention.
        covariance: (B, 2, 2) of the same.
        residual_sd, length_scale: (B,) of the residual.
    """

    mean: Floats
    covariance: Floats
    residual_sd: Floats
    length_scale: Floats

    def expectation(self, at: Floats) -> Floats:
        """Return (B, n) the expected log capacity at parallelisms (B, n)."""
        return np.asarray(self.mean[:, :1] + np.log(at) - np.log1p(self.mean[:, 1:] * (at - 1.0)), float)

    def gradient(self, at: Floats) -> Floats:
        """Return (B, n, 2) the derivative of the expectation with respect to level and contention."""
        by_contention = -(at - 1.0) / (1.0 + self.mean[:, 1:] * (at - 1.0))
        return np.stack([np.ones_like(at), by_contention], axis=-1)

    def variance(self, at: Floats) -> Floats:
        """Return (B, n) the prior variance at parallelisms (B, n)."""
        gradient = self.gradient(at)
        by_line = np.einsum("bpi,bij,bpj->bp", gradient, self.covariance, gradient)
        return np.asarray(by_line + self.residual_sd[:, None] ** 2)

    def covariances(self, one: Floats, other: Floats) -> Floats:
        """Return (B, n, m) the prior covariance between parallelisms (B, n) and (B, m)."""
        distance = one[:, :, None] - other[:, None, :]
        residual = self.residual_sd[:, None, None] ** 2 * kernel(distance, self.length_scale[:, None, None])
        by_line = self.gradient(one) @ self.covariance @ self.gradient(other).transpose(0, 2, 1)
        return np.asarray(by_line + residual, float)


def posterior(
    prior: FleetPrior, kind: Ints, observed: Floats, observed_per_s: Floats, *, noise_share: Floats, top: int
) -> tuple[Floats, Floats]:
    """Return median and standard deviation of the capacity of B operators at 1..top, both (B, top), records/s.

    ``kind``, (B,), is the place among the prior's kinds; parallelisms at which they were observed, the mean capacity
    there and its standard deviation as a share of it are (B, m), NaN in the padding; m may be 0.
    """
    present = np.isfinite(observed)
    at = np.where(present, observed, 1.0)
    grid = np.broadcast_to(np.arange(1.0, top + 1), (len(kind), top))
    process = _process(prior, kind, np.asarray(present.any(axis=1)))
    # Padding is an observation of nothing: it is independent of everything else.
    both = present[:, :, None] & present[:, None, :]
    noise = np.where(present, noise_share, 1.0) ** 2
    inner = np.where(both, process.covariances(at, at), 0.0) + noise[:, :, None] * np.eye(observed.shape[1])
    cross = np.where(present[:, None, :], process.covariances(grid, at), 0.0)
    log_observed = np.log(np.where(present, observed_per_s, 1.0))
    residual = np.where(present, log_observed - process.expectation(at), 0.0)
    gain = np.linalg.solve(inner, cross.transpose(0, 2, 1)).transpose(0, 2, 1)
    mean = process.expectation(grid) + np.einsum("bpm,bm->bp", gain, residual)
    variance = np.maximum(process.variance(grid) - (gain * cross).sum(axis=2), 0.0)
    # The median, not the larger mean of a lognormal: a wide prior must not promise more.
    median = np.exp(mean)
    return median, median * np.sqrt(np.expm1(variance))


def _process(prior: FleetPrior, kind: Ints, is_observed: npt.NDArray[np.bool_]) -> _LogCapacity:
    """Return the process of each operator, with a flat prior of the level where it was observed."""
    flat = np.diag([FLAT_LEVEL_SD**2, 0.0]) + prior.covariance[kind] * np.diag([0.0, 1.0])
    return _LogCapacity(
        mean=prior.mean[kind],
        covariance=np.where(is_observed[:, None, None], flat, prior.covariance[kind]),
        residual_sd=prior.residual_sd[kind],
        length_scale=prior.length_scale[kind],
    )
