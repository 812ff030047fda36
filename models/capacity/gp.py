"""Gaussian processes of capacity over parallelism, fitted for a whole batch of operators at once.

Model of one operator, capacities y scaled to at most 1:

    y(p) = w p + f(p) + noise,   f ~ GP(0, r s^2 exp(-d^2 / (2 l^2))),   noise ~ N(0, s^2 v(p)),   w ~ flat

| name | meaning | shape |
| --- | --- | --- |
| l | length scale of the residual, in units of parallelism, bounded to [1.5, p_max / 2] | (B,) |
| r | residual variance / noise variance | (B,) |
| s2 | noise variance of one sample where v = 1 (a share of capacity, squared) | (B,) |
| v | squared noise scale: noise grows with capacity | (B, m) |
| w | slope of the linear mean through the origin | (B,) |

With D = diag(v / n) for n samples at a parallelism, one eigendecomposition D^-1/2 K_l D^-1/2 = Q diag(e) Q' gives the
likelihood of every r: w by generalised least squares and s2 in closed form (restricted likelihood), so that only l and
r are searched.  Equations: Rasmussen and Williams, "Gaussian Processes for Machine Learning" [RW], 2.7 and 5.4.1.

Deviation: ContTune has a zero mean and a free length scale; its fit collapses between points and falls beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.capacity.capacity_samples import CapacitySamples

# Prior of the noise: worth two samples with a standard deviation of 3%; without it single samples would count as exact.
NOISE_PRIOR_WEIGHT = 2.0
NOISE_PRIOR_SHARE = 0.03
MIN_LENGTH_SCALE = 1.5


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Samples in the eigenbasis of the whitened kernel of one length scale per operator.

    Attributes:
        length_scale: (B,) l.
        eigenvalues: (B, m) e, zero in the padding.
        basis: (B, m, m) Q' D^-1/2: takes values at the samples into the basis.
        y: (B, m) scaled capacity in the basis.
        h: (B, m) parallelism in the basis.
    """

    length_scale: Floats
    eigenvalues: Floats
    basis: Floats
    y: Floats
    h: Floats


@dataclass(frozen=True, slots=True)
class ProfileLikelihood:
    """Fits for given l and r: the likelihood and what maximises it in closed form; each (B, G) for G values of r."""

    log_likelihood: Floats
    slope: Floats
    noise_variance: Floats
    slope_precision: Floats  # 1 / variance of the slope, in units of 1 / noise variance


def kernel(distance: Floats, length_scale: Floats) -> Floats:
    """Return the squared exponential exp(-d^2 / (2 l^2)); both broadcast."""
    return np.asarray(np.exp(-0.5 * (distance / length_scale) ** 2), float)


def whiten(samples: CapacitySamples, length_scale: Floats) -> Spectrum:
    """Diagonalise the whitened kernel of each operator for its length scale, (B,)."""
    weight = np.sqrt(samples.count) / samples.noise_scale  # D^-1/2, zero in the padding
    at = samples.parallelism
    distance = at[:, :, None] - at[:, None, :]
    whitened = kernel(distance, length_scale[:, None, None]) * weight[:, :, None] * weight[:, None, :]
    eigenvalues, vectors = np.linalg.eigh(whitened)
    basis = vectors.transpose(0, 2, 1) * weight[:, None, :]
    y = samples.mean_per_s / samples.scale_per_s[:, None]
    return Spectrum(
        length_scale=length_scale,
        eigenvalues=np.maximum(eigenvalues, 0.0),
        basis=basis,
        y=np.einsum("bij,bj->bi", basis, y),
        h=np.einsum("bij,bj->bi", basis, at),
    )


def profile(samples: CapacitySamples, spectrum: Spectrum, ratio: Floats) -> ProfileLikelihood:
    """Return the restricted likelihood over (B, G) values of r, with slope and noise at their best values."""
    shrink = ratio[:, :, None] * spectrum.eigenvalues[:, None, :] + 1.0  # (B, G, m)
    inverse = 1.0 / shrink
    hh = np.einsum("bgm,bm->bg", inverse, spectrum.h**2)
    hy = np.einsum("bgm,bm->bg", inverse, spectrum.h * spectrum.y)
    yy = np.einsum("bgm,bm->bg", inverse, spectrum.y**2)
    residual = np.maximum(yy - hy**2 / hh, 0.0) + samples.relative_squares[:, None]
    freedom = samples.count.sum(axis=1, keepdims=True) - 1.0 + NOISE_PRIOR_WEIGHT
    noise = (residual + NOISE_PRIOR_WEIGHT * NOISE_PRIOR_SHARE**2) / freedom
    likelihood = -0.5 * (freedom * np.log(noise) + np.log(shrink).sum(axis=2) + np.log(hh))
    return ProfileLikelihood(likelihood, hy / hh, noise, hh)


def predict(
    samples: CapacitySamples,
    spectrum: Spectrum,
    grid: Floats,
    *,
    ratio: Floats,
    slope: Floats,
    noise_variance: Floats,
    slope_precision: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the capacity itself on a grid, both (B, P) in records/s.

    Eq. 2.41 and 2.42 of [RW]: the residual's posterior plus what the uncertain slope adds.

    Args:
        samples: of B operators.
        spectrum: of the same at their length scale.
        grid: (P,) parallelisms.
        ratio: (B,) r.
        slope: (B,) w, in scaled capacity per unit of parallelism.
        noise_variance: (B,) s2.
        slope_precision: (B,) see :class:`ProfileLikelihood`; None when the slope is given, not estimated.
    """
    inverse = 1.0 / (ratio[:, None] * spectrum.eigenvalues + 1.0)  # (B, m)
    distance = grid[None, :, None] - samples.parallelism[:, None, :]
    cross = kernel(distance, spectrum.length_scale[:, None, None]) @ spectrum.basis.transpose(0, 2, 1)  # (B, P, m)
    residual = (spectrum.y - slope[:, None] * spectrum.h) * inverse
    mean = slope[:, None] * grid + ratio[:, None] * np.einsum("bpm,bm->bp", cross, residual)
    explained = ratio[:, None] ** 2 * np.einsum("bpm,bm->bp", cross**2, inverse)
    variance = np.maximum(ratio[:, None] - explained, 0.0)
    if slope_precision is not None:
        unexplained = grid - ratio[:, None] * np.einsum("bpm,bm->bp", cross, spectrum.h * inverse)
        variance = variance + unexplained**2 / slope_precision[:, None]
    scale = samples.scale_per_s[:, None]
    return mean * scale, np.sqrt(variance * noise_variance[:, None]) * scale
