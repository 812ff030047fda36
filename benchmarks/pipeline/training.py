"""Capacity training: 3,000 operators with 50 observations on one core, against a plain loop over sklearn's GP.

Both solve the same problem: a line through the origin plus a Gaussian process with a squared exponential kernel, the
same bounds of its length scale, noise and hyperparameters by maximum (restricted) marginal likelihood, mean and
standard deviation on the grid 1..64.  The loop is timed on a sample of REFERENCE_OPERATORS of the operators, for it
takes long on all of them.  Times are CPU seconds with one thread each, so that other load does not enter.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.measurement import Measurement
from models.arrays import Floats, Ints
from models.capacity.capacity_samples import pack
from models.capacity.fit import fit_kernel
from models.capacity.gp import predict

OPERATORS = 3000
REFERENCE_OPERATORS = 150
HELD_BACK = 10  # observations per operator at parallelisms that were not trained on
TOP = 64
BATCH = 256
GRID = np.arange(1.0, TOP + 1)


@dataclass(frozen=True, slots=True)
class Fleet:
    """Synthetic operators that scale as g p / (1 + a (p - 1)), the shape that ContTune's measurements follow.

    Attributes:
        parallelism, capacity_per_s: (B, n) observations to train on.
        held_parallelism, held_per_s: (B, HELD_BACK) observations to score on.
    """

    parallelism: Ints
    capacity_per_s: Floats
    held_parallelism: Ints
    held_per_s: Floats


def fleet(operators: int, points: int, repeats: int, seed: int = 11) -> Fleet:
    """Return operators seen ``repeats`` times at each of ``points`` parallelisms, with 1-8% noise."""
    generator = np.random.default_rng(seed)
    ranges = ((1e3, 1e6), (0.005, 0.06), (0.01, 0.08))
    g, a, noise = (generator.uniform(*bounds, (operators, 1)) for bounds in ranges)
    order = generator.permuted(np.tile(np.arange(1, TOP + 1), (operators, 1)), axis=1)
    observed, held = np.repeat(order[:, :points], repeats, axis=1), order[:, points : points + HELD_BACK]

    def observe(parallelism: Ints) -> Floats:
        truth = g * parallelism / (1 + a * (parallelism - 1))
        return np.asarray(truth * (1 + noise * generator.standard_normal(parallelism.shape)), float)

    return Fleet(observed, observe(observed), held, observe(held))


def recent_means(
    owner: Ints, parallelism: Ints, timestamp: Floats, capacity_per_s: Floats, *, keep: int
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Keep the most recent samples of each (operator, parallelism) and reduce them: mean reversion of ContTune.

    The pipeline does the same in Spark; this is for data that is already in memory.

    Args:
        owner: (rows,) operator of each sample.
        parallelism: (rows,) at which it was seen.
        timestamp: (rows,) when; larger is later.
        capacity_per_s: (rows,) records/s.
        keep: K, samples kept per (operator, parallelism).

    Returns:
        owner, parallelism, count, mean and squared deviations, one row per (operator, parallelism): see :func:`pack`.
    """
    order = np.lexsort((-timestamp, parallelism, owner))
    keys = np.stack((owner[order], parallelism[order]))
    first = np.concatenate(([True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)))[: len(order)]
    group = np.cumsum(first) - 1
    age = np.arange(len(order)) - np.flatnonzero(first)[group]
    retained, values = group[age < keep], capacity_per_s[order][age < keep]
    count = np.asarray(np.bincount(retained), np.int64)
    mean = np.asarray(np.bincount(retained, values) / count, float)
    squares = np.asarray(np.bincount(retained, (values - mean[retained]) ** 2), float)
    return np.asarray(keys[0][first]), np.asarray(keys[1][first]), count, mean, squares


def train_batched(data: Fleet) -> tuple[float, Floats]:
    """Return CPU seconds and mean capacity (B, TOP) of the project's way."""
    begin = time.process_time()
    operators, per_operator = data.parallelism.shape
    owner = np.repeat(np.arange(operators), per_operator)
    age = np.arange(owner.size, dtype=float)
    points = recent_means(owner, data.parallelism.ravel(), age, data.capacity_per_s.ravel(), keep=per_operator)
    samples, means = pack(*points), []
    for first in range(0, operators, BATCH):
        rows = np.arange(first, min(first + BATCH, operators))
        part = samples.take(rows)
        result = fit_kernel(part, part.parallelism.max(axis=1))
        mean, _ = predict(
            part,
            result.spectrum,
            GRID,
            ratio=result.ratio,
            slope=result.slope,
            noise_variance=result.noise_variance,
            slope_precision=result.slope_precision,
        )
        means.append(mean)
    return time.process_time() - begin, np.concatenate(means)


def plain_loop(data: Fleet) -> tuple[float, Floats]:
    """Return CPU seconds and mean capacity (B, TOP) of one GaussianProcessRegressor per operator."""
    begin = time.process_time()
    means = []
    for parallelism, capacity in zip(data.parallelism.astype(float), data.capacity_per_s, strict=True):
        slope, scale = (parallelism @ capacity) / (parallelism @ parallelism), capacity.max()
        length = RBF(4.0, (1.5, parallelism.max() / 2))
        model = GaussianProcessRegressor(ConstantKernel(0.01, (1e-6, 1e2)) * length + WhiteKernel(1e-3, (1e-7, 1.0)))
        model.fit(parallelism[:, None], (capacity - slope * parallelism) / scale)
        mean, _ = model.predict(GRID[:, None], return_std=True)
        means.append(mean * scale + slope * GRID)
    return time.process_time() - begin, np.array(means)


def held_out_error(data: Fleet, mean: Floats) -> float:
    """Return mean |predicted - seen| / seen over the held-back observations of the operators in ``mean``."""
    count = len(mean)
    predicted = np.take_along_axis(mean, data.held_parallelism[:count] - 1, axis=1)
    observed = data.held_per_s[:count]
    return float(np.mean(np.abs(predicted - observed) / observed))


def compare_ways(label: str, points: int, repeats: int) -> list[Measurement]:
    """Measure speed, and the error on the same held-back observations."""
    data = fleet(OPERATORS, points, repeats)
    sample = Fleet(*(getattr(data, name)[:REFERENCE_OPERATORS] for name in Fleet.__dataclass_fields__))
    ours_s, mean = train_batched(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        loop_s, loop_mean = plain_loop(sample)
    loop, ours = REFERENCE_OPERATORS / loop_s, OPERATORS / ours_s
    error, loop_error = held_out_error(data, mean[:REFERENCE_OPERATORS]), held_out_error(data, loop_mean)
    against = f"sklearn loop on {REFERENCE_OPERATORS} of them"
    return [
        Measurement(f"capacity training, {label}, against {against}", ours, "operators/s/core", loop, ours / loop),
        Measurement(f"capacity training, {label}, held-out error", error, "share", loop_error, loop_error / error),
    ]


def run(work: Path) -> list[Measurement]:  # noqa: ARG001 - every benchmark is given a directory; this one needs none
    """Measure 50 observations as the pipeline keeps them (10 parallelisms x 5), then all at different parallelisms."""
    with threadpool_limits(limits=1):
        return compare_ways("50 = 10 p x 5", 10, 5) + compare_ways("50 p x 1", 50, 1)
