"""Capacity curves of a batch of operators: an average over shapes of scaling, each with a Gaussian process on top.

    ln C(p) = a + ln h_s(p) + f(p) + v + noise,   f ~ GP(0, r t^2 exp(-d^2 / (2 l^2))),   v ~ N(0, V t^2),   a ~ flat

| name | meaning | shape |
| --- | --- | --- |
| h_s | shapes of :mod:`models.capacity.scaling_shapes`, s = 1..S | |
| l | length scale of the residual, in units of parallelism: one of LENGTHS, up to half of the largest seen | (B,) |
| r | residual variance / noise variance, one of RATIOS | (B,) |
| v | error that all windows of one stay at a parallelism share: placement, neighbours, slow change | |
| t^2 | noise variance of the mean of n windows is t^2 (V + 1 / n + (d / t_0)^2) | (B, S) |
| d | doubt of a point at which the operator was used less than elsewhere: models/capacity/busy_windows.py | (B, m) |
| t_0^2 | variance of single windows, :func:`window_noise` | (B,) |

Of l and r the best are taken (type II maximum likelihood); shapes are averaged by their posterior probability (Bayesian
model averaging; Hoeting et al. 1999), so that an operator whose data cannot tell one shape from another has a wide
interval where the shapes part.  Equations as in :mod:`models.capacity.gp`: Rasmussen and Williams, 2.7 and 5.4.1.

Deviation: ContTune's process has a zero mean, and no error is shared between windows; its intervals are too narrow and
its extrapolation falls to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.capacity.capacity_samples import CapacitySamples
from models.capacity.gp import kernel
from models.capacity.scaling_shapes import LOG_PRIOR, log_shapes

RATIOS: Final = np.geomspace(1e-2, 1e3, 6)
_LOG_RATIO_SD: Final = 4.0  # prior of ln r, around 0
LENGTHS: Final = 3
SHORTEST: Final = 1.0
SHARED_VARIANCE: Final = 0.5  # V
NOISE_PRIOR_WEIGHT: Final = 2.0  # samples of the standard deviation NOISE_PRIOR_SHARE
NOISE_PRIOR_SHARE: Final = 0.03
BETWEEN_PRIOR_WEIGHT: Final = 2.0  # points for which the scatter of single windows stands
MAX_LOG_SD: Final = 0.8


@dataclass(frozen=True, slots=True)
class AveragedPrediction:
    """Predictions of B operators at n parallelisms.

    Attributes:
        median_per_s: (B, n) capacity, records/s.
        log_sd: (B, n) standard deviation of its logarithm, for a new stay at that parallelism.
        noise_share: (B,) standard deviation of one window beside that, as a share of capacity.
        length_scale: (B,) l.
        signal_ratio: (B,) r.
    """

    median_per_s: Floats
    log_sd: Floats
    noise_share: Floats
    length_scale: Floats
    signal_ratio: Floats


@dataclass(frozen=True, slots=True)
class _WhitenedPoints:
    """Points of each operator in the eigenbasis of the whitened kernel of one length scale."""

    eigenvalues: Floats  # (B, m)
    basis: Floats  # (B, m, m)
    one: Floats  # (B, m) the constant
    residual: Floats  # (B, S, m) ln C - ln h


@dataclass(frozen=True, slots=True)
class _Scores:
    """Posterior of the shapes for each r: each (B, G, S)."""

    log_likelihood: Floats
    level: Floats
    noise_variance: Floats
    level_precision: Floats  # (B, G) in units of 1 / noise variance


def length_scales(largest: Floats) -> Floats:
    """Return (B, LENGTHS) length scales to try, from the largest parallelism seen of each job, (B,)."""
    upper = np.maximum(largest / 2.0, 1.5 * SHORTEST)
    return SHORTEST * (upper[:, None] / SHORTEST) ** np.linspace(0.0, 1.0, LENGTHS)


def window_noise(samples: CapacitySamples) -> Floats:
    """Return (B,) variance of the log of one window's capacity within a stay, with a prior of two windows at 3%."""
    present = samples.present
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(present, samples.squares / samples.mean_per_s**2, 0.0).sum(axis=1)
    freedom = np.where(present, samples.count - 1.0, 0.0).sum(axis=1)
    prior = NOISE_PRIOR_WEIGHT * NOISE_PRIOR_SHARE**2
    return np.asarray((relative + prior) / (freedom + NOISE_PRIOR_WEIGHT), float)


def fit_averaged(
    samples: CapacitySamples, lengths: Floats, ratios: Floats, *, key_groups: Floats, query: Ints
) -> AveragedPrediction:
    """Fit a batch of operators and predict their capacities.

    Args:
        samples: of B operators, each with at least one point.
        lengths: (B, L) length scales to try.
        ratios: (B, G) values of r to try.
        key_groups: (B,) NaN where not known.
        query: (B, n) parallelisms to predict, at least 1; (1, n) when they are the same for all.
    """
    present = samples.present
    at = np.where(present, samples.parallelism, 1.0)
    tables, table = _tabulate_shapes(key_groups, int(max(at.max(), query.max())))
    logs = np.where(present, np.log(np.where(present, samples.mean_per_s, 1.0)), 0.0)
    centre = logs.sum(axis=1) / samples.points
    noise = window_noise(samples)
    shapes = _look_up(tables, table, at.astype(np.int64))
    away = np.where(present, logs - centre[:, None], 0.0)[:, None, :] - shapes
    best: tuple[_WhitenedPoints, _Scores] | None = None
    length, evidence = lengths[:, 0], np.full(len(samples), -np.inf)
    for column in lengths.T:
        tried = _whiten(samples, at, away, column, noise)
        scores = _score(samples, tried, ratios, noise)
        value = _log_mean(scores.log_likelihood).max(axis=1)
        wins = value > evidence
        length, evidence = np.where(wins, column, length), np.where(wins, value, evidence)
        best = (tried, scores) if best is None else _choose(wins, (tried, scores), best)
    if best is None:
        raise ValueError("there is no length scale to try")
    distance = np.asarray(query[:, :, None] - at[:, None, :], float)
    cross = kernel(distance, length[:, None, None]) @ best[0].basis.transpose(0, 2, 1)  # (B, n, m)
    result = _predict(*best, ratios, cross, _look_up(tables, table, query))
    return AveragedPrediction(
        median_per_s=np.exp(result.mean + centre[:, None]),
        log_sd=np.minimum(np.sqrt(result.variance), MAX_LOG_SD),
        noise_share=np.sqrt(noise),
        length_scale=length,
        signal_ratio=result.ratio,
    )


def _tabulate_shapes(key_groups: Floats, top: int) -> tuple[Floats, Ints]:
    """Return (T, S, top) shapes of each number of key groups that there is, and (B,) which is whose."""
    groups, table = np.unique(key_groups, return_inverse=True)
    return np.stack([log_shapes(top, float(one)) for one in groups]), np.asarray(table, np.int64)


def _look_up(tables: Floats, table: Ints, at: Ints) -> Floats:
    """Return (B, S, n) shapes at parallelisms (B, n) or (1, n)."""
    if len(at) == 1:
        return np.asarray(tables[:, :, at[0] - 1][table], float)
    return np.asarray(tables[table[:, None], :, at - 1].transpose(0, 2, 1), float)


def _usual_variance(samples: CapacitySamples) -> Floats:
    """Return (B, m) the noise of a point without doubt, in units of t^2."""
    return np.asarray(SHARED_VARIANCE + 1.0 / np.maximum(samples.count, 1.0), float)


def _whiten(samples: CapacitySamples, at: Floats, away: Floats, length_scale: Floats, noise: Floats) -> _WhitenedPoints:
    present = samples.present
    variance = _usual_variance(samples) + samples.doubt**2 / noise[:, None]
    weight = np.where(present, 1.0 / np.sqrt(variance), 0.0)
    distance = at[:, :, None] - at[:, None, :]
    whitened = kernel(distance, length_scale[:, None, None]) * weight[:, :, None] * weight[:, None, :]
    eigenvalues, vectors = np.linalg.eigh(whitened)
    basis = vectors.transpose(0, 2, 1) * weight[:, None, :]
    return _WhitenedPoints(np.maximum(eigenvalues, 0.0), basis, basis.sum(axis=2), away @ basis.transpose(0, 2, 1))


def _score(samples: CapacitySamples, white: _WhitenedPoints, ratios: Floats, noise: Floats) -> _Scores:
    """Return the restricted likelihood of every r and shape, with level and noise at their best values."""
    shrink = ratios[:, :, None] * white.eigenvalues[:, None, :] + 1.0  # (B, G, m)
    inverse = 1.0 / shrink
    precision = (inverse * white.one[:, None, :] ** 2).sum(axis=2)
    by_shape = white.residual.transpose(0, 2, 1)  # (B, m, S)
    product = (inverse * white.one[:, None, :]) @ by_shape
    squares = np.maximum(inverse @ by_shape**2 - product**2 / precision[:, :, None], 0.0)
    # A point in doubt is as good as none: it must not make the others look sure of each other.
    usual = _usual_variance(samples)
    points = np.where(samples.present, usual / (usual + samples.doubt**2 / noise[:, None]), 0.0).sum(axis=1)
    freedom = (np.maximum(points, 1.0) - 1.0 + BETWEEN_PRIOR_WEIGHT)[:, None, None]
    variance = (squares + BETWEEN_PRIOR_WEIGHT * noise[:, None, None]) / freedom
    constant = np.log(shrink).sum(axis=2) + np.log(precision) + (np.log(ratios) / _LOG_RATIO_SD) ** 2
    likelihood = -0.5 * (freedom * np.log(variance) + constant[:, :, None]) + LOG_PRIOR
    return _Scores(likelihood, product / precision[:, :, None], variance, precision)


def _log_mean(log_likelihood: Floats) -> Floats:
    """Return (B, G) the log of the likelihood summed over the shapes."""
    top = log_likelihood.max(axis=2, keepdims=True)
    return np.asarray(top[:, :, 0] + np.log(np.exp(log_likelihood - top).sum(axis=2)), float)


def _choose(
    wins: Bools, new: tuple[_WhitenedPoints, _Scores], old: tuple[_WhitenedPoints, _Scores]
) -> tuple[_WhitenedPoints, _Scores]:
    def take(one: Floats, other: Floats) -> Floats:
        return np.where(wins.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    white = [take(getattr(new[0], name), getattr(old[0], name)) for name in _WhitenedPoints.__slots__]
    scores = [take(getattr(new[1], name), getattr(old[1], name)) for name in _Scores.__slots__]
    return _WhitenedPoints(*white), _Scores(*scores)


@dataclass(frozen=True, slots=True)
class _Prediction:
    mean: Floats  # (B, n) of ln C - centre
    variance: Floats  # (B, n)
    ratio: Floats  # (B,) r


def _predict(white: _WhitenedPoints, scores: _Scores, ratios: Floats, cross: Floats, shapes: Floats) -> _Prediction:
    """Average the predictions of shapes, (B, S, n) ln h at the query, with the points at the best length scale.

    Scores are of (B, G) ratios; ``cross``, (B, n, m), is the kernel of query and points in the basis of the points.
    """
    place = (np.arange(len(cross)), _log_mean(scores.log_likelihood).argmax(axis=1))
    ratio = ratios[place]
    likelihood, level, noise = scores.log_likelihood[place], scores.level[place], scores.noise_variance[place]
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)  # (B, S)
    inverse = 1.0 / (ratio[:, None] * white.eigenvalues + 1.0)
    pull = ratio[:, None, None] * cross * inverse[:, None, :]  # (B, n, m) residual at the query per whitened residual
    remaining = white.residual - level[:, :, None] * white.one[:, None, :]
    means = remaining @ pull.transpose(0, 2, 1)  # (B, S, n)
    means += shapes
    means += level[:, :, None]
    mean = (weights[:, None, :] @ means)[:, 0, :]
    means -= mean[:, None, :]
    np.square(means, out=means)
    apart = (weights[:, None, :] @ means)[:, 0, :]
    unexplained = 1.0 - (pull @ white.one[:, :, None])[:, :, 0]
    explained = ratio[:, None] * (pull * cross).sum(axis=2)
    share = ratio[:, None] - explained + unexplained**2 / scores.level_precision[place][:, None]
    scale = (weights * noise).sum(axis=1)
    return _Prediction(mean, scale[:, None] * (np.maximum(share, 0.0) + SHARED_VARIANCE) + apart, ratio)
