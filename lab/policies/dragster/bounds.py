"""The bounds of Theorem 1 of Dragster, Eq. 19 and 20, which Theorem 2 has for learnt throughput functions as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.policies.dragster.gaussian import Kernel
from lab.policies.dragster.ucb import weight
from models.arrays import Floats


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of the theorem, in normalised units.

    Attributes:
        operators: M.
        throughput_most: H, upper bound of the throughput functions.
        slack: epsilon of Slater's condition: the least surplus of an operator at its largest configuration.
        slope_most: G, upper bound of |df/dy_i|.
        path: V, how far the best capacities move in all.
        candidates: |X| of one operator.
        kernel: of its Gaussian process.
        delta: bounds hold with probability 1 - 1 / delta.
    """

    operators: int
    throughput_most: float
    slack: float
    slope_most: float
    path: float
    candidates: int
    kernel: Kernel
    delta: float


def information_gain(kernel: Kernel, candidates: int, slots: int) -> Floats:
    """Return (T,) Gamma_t, what t samples of 1, ..., n tasks tell at most, in nats.

    Deviation: the best samples are NP-hard to find; these are found greedily, by the largest variance, and tell at
    least 1 - 1/e as much, so that the bounds come out lower than the paper's, never higher.
    """
    tasks = np.arange(1, candidates + 1)
    covariance, noise = kernel.between(tasks, tasks), kernel.noise**2
    gains, total = np.zeros(slots), 0.0
    for slot in range(slots):
        at = int(np.diag(covariance).argmax())
        variance = float(covariance[at, at])
        total += 0.5 * np.log1p(variance / noise)
        gains[slot] = total
        covariance = covariance - np.outer(covariance[:, at], covariance[at]) / (variance + noise)
    return gains


def fit_bound(constants: Constants, slots: int) -> Floats:
    """Return (T,) what Fit_t stays below, Eq. 19 as printed; the proof ends with larger terms.

    Args:
        constants: of the job.
        slots: T.
    """
    at = np.arange(1, slots + 1)
    most, slack, operators = constants.throughput_most, constants.slack, constants.operators
    first = operators ** (2 / 3) * most * (1 + most / (2 * slack))
    return np.asarray(first + most * np.sqrt(at / slack) + operators * _tracking(constants, slots), float)


def regret_bound(constants: Constants, fit: Floats) -> Floats:
    """Return (..., T) what Reg_t stays below, Eq. 20.

    Args:
        constants: of the job.
        fit: (..., T) Fit_t as measured; a negative one counts as 0.
    """
    slots, most, operators = fit.shape[-1], constants.throughput_most, constants.operators
    first = np.sqrt(np.arange(1, slots + 1)) * (constants.slope_most**2 / 2 + constants.path)
    second = most * (operators + (2 + operators * most) / (2 * constants.slack)) * np.maximum(fit, 0.0)
    return np.asarray(first + second + constants.slope_most * operators * _tracking(constants, slots), float)


def _tracking(constants: Constants, slots: int) -> Floats:
    """Return (T,) sqrt(8 t beta_t Gamma_t / log(1 + sigma^-2)), the price of not knowing capacities."""
    at = np.arange(1, slots + 1)
    beta = np.array([weight(int(slot), constants.candidates, constants.delta) for slot in at])
    gain = information_gain(constants.kernel, constants.candidates, slots)
    return np.asarray(np.sqrt(8 * at * beta * gain / np.log1p(constants.kernel.noise**-2)), float)
