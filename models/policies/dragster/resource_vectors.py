"""Configurations of more than one resource: x_i as a vector of tasks, processor cores and memory of each task.

Section 4.2 of Dragster has x_i as a vector of d resources; its evaluation varies tasks alone, and so does a policy of a
running job, since Flink changes nothing but parallelism without a new deployment.  The decision over vectors is for a
cluster whose description offers pods of several sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from models.arrays import Floats
from models.policies.dragster.dragster_options import Bonus
from models.policies.dragster.ucb import weight


@dataclass(frozen=True, slots=True)
class PodSize:
    """A size that a task can have, as a cluster's description gives it.

    Attributes:
        cores: processor cores.
        memory_gib: memory.
        price_per_h: of one pod of this size.
    """

    cores: float
    memory_gib: float
    price_per_h: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """All configurations of one operator.

    Attributes:
        vectors: (n, 3) tasks, cores and memory of each task.
        price_per_h: (n,).
    """

    vectors: Floats
    price_per_h: Floats


@dataclass(frozen=True, slots=True)
class Observed:
    """Capacities seen.

    Attributes:
        vectors: (m, 3) where.
        capacity: (m,) normalised.
    """

    vectors: Floats
    capacity: Floats


@dataclass(frozen=True, slots=True)
class VectorKernel:
    """Squared exponential kernel with a length scale for each resource, as a share of its range.

    Attributes:
        length_share: l of each resource / its range.
        deviation, noise: as in :class:`models.policies.dragster.gaussian.Kernel`.
    """

    length_share: float = 0.5
    deviation: float = 0.3
    noise: float = 0.03


def list_candidates(tasks_max: int, sizes: Sequence[PodSize]) -> Candidates:
    """Return every number of tasks with every size.

    Raises:
        ValueError: no size or no task.
    """
    if tasks_max < 1 or not sizes:
        raise ValueError("at least one task and one size of a pod are needed")
    pairs = list(product(range(1, tasks_max + 1), sizes))
    vectors = np.array([(tasks, size.cores, size.memory_gib) for tasks, size in pairs], float)
    return Candidates(vectors, np.array([tasks * size.price_per_h for tasks, size in pairs], float))


def choose_vector(
    candidates: Candidates,
    observed: Observed,
    target: float,
    slot: int,
    *,
    kernel: VectorKernel,
    bonus: Bonus,
    delta: float,
) -> int:
    """Return the row of the configuration that tracks a capacity, Eq. 18; of equally good ones the cheapest.

    Args:
        candidates: of the operator.
        observed: at least one capacity.
        target: y, normalised.
        slot: t, from 1.
        kernel: prior and noise.
        bonus: worth of uncertainty.
        delta: of beta.
    """
    mean, deviation = _posterior(candidates, observed, kernel)
    beta = weight(slot, len(candidates.vectors), delta)
    worth = beta * deviation**2 if bonus is Bonus.VARIANCE else np.sqrt(beta) * deviation
    score = worth - np.abs(mean - target)
    good = np.flatnonzero(score >= score.max() - 1e-9)
    return int(good[candidates.price_per_h[good].argmin()])


def project_on_price(
    candidates: Mapping[str, Candidates], capacity: Mapping[str, Floats], needed: Mapping[str, float], price_max: float
) -> dict[str, int]:
    """Return operator -> row, the configurations of the highest share of what is needed that the price allows.

    As in :func:`models.policies.dragster.projection.project`, in money in place of tasks: for each operator the
    cheapest configuration that has a share of its needed capacity; only the candidates' own shares can differ.

    Returns:
        the cheapest configuration of each operator when the price does not even pay more.
    """
    best = {name: int(one.price_per_h.argmin()) for name, one in candidates.items()}
    shares = {0.0, 1.0} | {min(float(y) / needed[name], 1.0) for name in candidates for y in capacity[name]}
    for share in sorted(shares):
        rows = {}
        for name, one in candidates.items():
            enough = np.flatnonzero(capacity[name] >= share * needed[name] - 1e-12)
            if len(enough):
                rows[name] = int(enough[one.price_per_h[enough].argmin()])
        if len(rows) == len(candidates) and sum(candidates[n].price_per_h[at] for n, at in rows.items()) <= price_max:
            best = rows
    return best


def _posterior(candidates: Candidates, observed: Observed, kernel: VectorKernel) -> tuple[Floats, Floats]:
    """Return (n,) mean and deviation about a prior mean in proportion to tasks times cores, Eq. 17."""
    span = np.ptp(candidates.vectors, axis=0)
    scale = kernel.length_share * np.where(span > 0, span, 1.0)

    def between(left: Floats, right: Floats) -> Floats:
        away = ((left[:, None, :] - right[None, :, :]) / scale) ** 2
        return np.asarray(kernel.deviation**2 * np.exp(-0.5 * away.sum(axis=2)), float)

    work, grid = observed.vectors[:, 0] * observed.vectors[:, 1], candidates.vectors[:, 0] * candidates.vectors[:, 1]
    slope = float((work * observed.capacity).sum() / (work**2).sum())
    covariance = between(observed.vectors, observed.vectors) + kernel.noise**2 * np.eye(len(work))
    factor, cross = cho_factor(covariance, lower=True), between(observed.vectors, candidates.vectors)
    mean = slope * grid + cross.T @ cho_solve(factor, observed.capacity - slope * work)
    variance = kernel.deviation**2 - (cross * cho_solve(factor, cross)).sum(axis=0)
    return np.asarray(mean, float), np.sqrt(np.maximum(variance, 0.0))
