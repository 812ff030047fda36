"""Intervals of means over days and seeds, by resampling both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from models.arrays import Floats

LEVEL = 0.9
RESAMPLES = 2000
LEAST_DAYS = 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        mean: over days and seeds.
        low, high: ends of the interval of :data:`LEVEL`; with fewer days than :data:`LEAST_DAYS` the least and
            largest that were seen.
    """

    mean: float
    low: float
    high: float


@lru_cache(maxsize=64)  # of a thousand jobs most have the same days
def _resample(days: int, seeds: int, seed: int) -> tuple[Floats, Floats]:
    """Return (B, D) and (B, S) weights of days and seeds in each of B resamples; rows add up to 1."""
    generator = np.random.default_rng(seed)
    of_days = generator.multinomial(days, np.full(days, 1.0 / days), RESAMPLES) / days
    of_seeds = generator.multinomial(seeds, np.full(seeds, 1.0 / seeds), RESAMPLES) / seeds
    return of_days, of_seeds


def estimate(values: Floats, seed: int = 0) -> Estimate:
    """Return the mean of (D, S) values with its interval.

    Days are resampled with replacement and so are seeds: the interval says how the mean would differ in another such
    week and with other failures and noise.  With a week of days it is a rough one, and days of one week resemble each
    other more than those of different ones.  With one ``seed`` for all jobs, sums over jobs are resampled together.
    """
    days, seeds = values.shape
    mean = float(values.mean())
    if days < LEAST_DAYS:
        return Estimate(mean, float(values.min()), float(values.max()))
    of_days, of_seeds = _resample(days, seeds, seed)
    means = np.einsum("bd,ds,bs->b", of_days, values, of_seeds)
    low, high = np.quantile(means, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Estimate(mean, float(low), float(high))
