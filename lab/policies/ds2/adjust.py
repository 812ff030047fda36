"""Small rules around DS2's optimum: significance, aggregation over intervals, headroom, a limited number of slots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from lab.policies.ds2.ds2_options import Aggregation

Parallelism = Mapping[str, int]
# Flink's own limit is 2^15; anything above this is a wrong measurement, not a parallelism.
MAX_PARALLELISM = 2**31 - 1
# A product this close above an integer is rounding error of floating point.
_CEIL_SLACK = 1e-9


def is_significant(current: Parallelism, wanted: Parallelism, *, up: int = 0, down: int = 1) -> bool:
    """Return whether any operator changes by more than a minor step.

    Deviation: the paper ignores changes "by one or two"; as in its code one instance more counts, one less does not.

    Args:
        current: operator -> running instances.
        wanted: operator -> requested instances.
        up: instances more that are still minor.
        down: instances less that are still minor.
    """
    return any(
        count > current.get(name, count) + up or count < current.get(name, count) - down
        for name, count in wanted.items()
    )


def aggregate(decisions: Sequence[Parallelism], how: Aggregation) -> dict[str, int]:
    """Return one decision from those of consecutive intervals, oldest first.

    The median of an even number of decisions is rounded up, since too few instances are worse than too many.
    """
    if how is Aggregation.LAST:
        return dict(decisions[-1])
    chosen = max if how is Aggregation.MAX else _median
    return {name: int(chosen([decision[name] for decision in decisions])) for name in decisions[-1]}


def rate_ratio(target_per_s: Mapping[str, float], achieved_per_s: Mapping[str, float]) -> float:
    """Return the largest target / achieved rate over the sources; 1 when none is known or all achieve their target."""
    ratios = [
        target_per_s[name] / achieved_per_s[name]
        for name in target_per_s
        if achieved_per_s.get(name, 0.0) > 0 and math.isfinite(target_per_s[name])
    ]
    return max([1.0, *ratios])


def over_provision(wanted: Parallelism, factor: float) -> dict[str, int]:
    """Return ceil(factor * parallelism) of each operator, at least 1."""
    return {name: whole(count * factor) for name, count in wanted.items()}


def whole(instances: float) -> int:
    """Return the smallest sufficient number of instances, at least 1, for a number that is not NaN."""
    return max(1, math.ceil(min(instances * (1.0 - _CEIL_SLACK), MAX_PARALLELISM)))


def scale_to_target(
    current: Parallelism, wanted: Parallelism, ratio: float, threshold: float, fixed: Sequence[str] = ()
) -> dict[str, int]:
    """Apply the target rate ratio: overheads that no instrumentation sees may leave the sources short of their target.

    Args:
        current: operator -> running instances.
        wanted: operator -> requested instances.
        ratio: as :func:`rate_ratio` gives it.
        threshold: above which every operator gets ceil(ratio * p), unless one of them is scaled up anyway.
        fixed: operators left as they are (sources).
    """
    scaled_up = any(count > current.get(name, count) for name, count in wanted.items())
    if scaled_up or not ratio > threshold or not math.isfinite(ratio):
        return dict(wanted)
    scaled = over_provision({name: count for name, count in wanted.items() if name not in fixed}, ratio)
    return {**wanted, **scaled}


def _median(counts: Sequence[int]) -> int:
    return math.ceil(statistics.median(counts))
