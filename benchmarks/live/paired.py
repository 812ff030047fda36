"""What Tidewise took more or less than each other policy on the same job and seed, with an interval over seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from benchmarks.live.policies import POLICIES, TIDEWISE
from benchmarks.live.results import RunResult
from benchmarks.live.tables import FIGURES

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Tidewise minus another policy on one job.

    Attributes:
        job, policy: of the comparison; policy is the other.
        seeds: with a measurement of both.
        mean: by figure.
        half_width: of the interval of :data:`LEVEL` by Student's t, by figure; infinite for a single seed.
    """

    job: str
    policy: str
    seeds: tuple[int, ...]
    mean: dict[str, float]
    half_width: dict[str, float]


def compare_pairs(results: Iterable[RunResult]) -> list[PairedDifference]:
    """Return the differences of each job and other policy; runs that are no measurement are left out."""
    runs = {(one.job, one.policy, one.seed): one for one in results if one.is_valid}
    pairs = defaultdict[tuple[str, str], list[tuple[RunResult, RunResult]]](list)
    for (job, policy, seed), other in sorted(runs.items(), key=lambda item: item[0]):
        own = runs.get((job, TIDEWISE, seed))
        if own is not None and policy in POLICIES and policy != TIDEWISE:
            pairs[job, policy].append((own, other))
    return [_compare(job, policy, each) for (job, policy), each in pairs.items()]


def _compare(job: str, policy: str, pairs: Sequence[tuple[RunResult, RunResult]]) -> PairedDifference:
    differences = {name: [read(own) - read(other) for own, other in pairs] for name, read, _ in FIGURES}
    means = {name: float(np.mean(values)) for name, values in differences.items()}
    widths = {name: _find_half_width(values) for name, values in differences.items()}
    return PairedDifference(job, policy, tuple(own.seed for own, _ in pairs), means, widths)


def _find_half_width(values: list[float]) -> float:
    count = len(values)
    if count < 2:
        return math.inf
    return float(stats.t.ppf((1 + LEVEL) / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count))


def format_pairs(rows: Iterable[PairedDifference]) -> str:
    """Return the differences as a table, those in which Tidewise costs more first."""
    lines = [
        "| job | Tidewise minus | seeds | " + " | ".join(name for name, *_ in FIGURES) + " |",
        "|" + "---|" * (3 + len(FIGURES)),
    ]
    for row in sorted(rows, key=lambda one: -one.mean["cost"]):
        cells = [
            f"{row.mean[name]:+.2f}" + (f" +-{row.half_width[name]:.2f}" if math.isfinite(row.half_width[name]) else "")
            for name, *_ in FIGURES
        ]
        title = POLICIES[row.policy].title
        lines.append(f"| {row.job} | {title} | {len(row.seeds)} | {' | '.join(cells)} |")
    return "\n".join(lines)
