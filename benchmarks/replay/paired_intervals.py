"""How much more a candidate costs than another on the same traces and seeds, with an interval over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats

DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CostRatio:
    """A candidate's cost over another's.

    Attributes:
        mean: geometric mean over traces and seeds.
        low, high: ends of the interval of :data:`LEVEL`.
    """

    mean: float
    low: float
    high: float

    @property
    def is_cheaper(self) -> bool:
        """Whether the candidate is the cheaper one."""
        return self.mean < 1.0


def compute_ratio(
    costs: Mapping[tuple[str, int], float], baseline: Mapping[tuple[str, int], float], seed: int = 0
) -> CostRatio:
    """Return the ratio with its bootstrap interval: traces are drawn with replacement, and seeds within each.

    Args:
        costs: (trace, seed) -> cost of the candidate.
        baseline: the same of the other.
        seed: of the draws.

    Raises:
        ValueError: no pair is in both.
    """
    by_trace: dict[str, list[float]] = {}
    for pair, cost in costs.items():
        if pair in baseline:
            by_trace.setdefault(pair[0], []).append(float(np.log(cost / baseline[pair])))
    if not by_trace:
        raise ValueError("no trace and seed has a cost of both")
    logs = list(by_trace.values())
    draws = _draw_means(logs, np.random.default_rng(seed))
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    mean = float(np.mean([np.mean(one) for one in logs]))
    return CostRatio(float(np.exp(mean)), float(np.exp(low)), float(np.exp(high)))


def _draw_means(logs: Sequence[Sequence[float]], generator: np.random.Generator) -> Floats:
    """Return (DRAWS,) means of resampled traces, each the mean of its resampled seeds."""
    of_traces = np.stack(
        [np.asarray(one, float)[generator.integers(len(one), size=(DRAWS, len(one)))].mean(axis=1) for one in logs]
    )
    chosen = generator.integers(len(logs), size=(len(logs), DRAWS))
    return np.asarray(np.take_along_axis(of_traces, chosen, axis=0).mean(axis=0))
