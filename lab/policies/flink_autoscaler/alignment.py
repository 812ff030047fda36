"""Rule 10: vertices after a hash exchange, and sources with partitions, get a parallelism that spreads evenly.

N is the number of partitions of a source, or of key groups.  With p subtasks the most loaded one has ceil(N / p) of
them, so some parallelisms cost more than they help.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from lab.policies.flink_autoscaler.config import Alignment
from lab.policies.flink_autoscaler.topology import HASH

INT_MAX = 2**31 - 1
# Modes of release 1.15.0: they rather keep the parallelism than take one that turns the direction of the scaling.
_LEGACY = (Alignment.LEGACY_EVENLY_SPREAD, Alignment.LEGACY_MAXIMIZE_UTILISATION)
# Modes that also take the first parallelism at which the floor of N / p falls.
_LOAD_REDUCING = (Alignment.BALANCED, Alignment.LEGACY_MAXIMIZE_UTILISATION)


@dataclass(frozen=True, slots=True)
class ParallelismLimits:
    """Limits of a vertex's parallelism.

    Attributes:
        lower, upper: by configuration.
        max_parallelism: the number of key groups.
    """

    lower: int
    upper: int
    max_parallelism: int

    def __post_init__(self) -> None:
        if not 1 <= self.max_parallelism <= INT_MAX:
            raise ValueError(f"a maximum parallelism of {self.max_parallelism} is not in 1..{INT_MAX}")
        if self.lower > self.upper:
            raise ValueError(f"the lower limit of parallelism, {self.lower}, is above the upper limit, {self.upper}")

    @property
    def highest(self) -> int:
        """The highest parallelism allowed."""
        return min(self.upper, self.max_parallelism)

    def clamp(self, parallelism: int) -> int:
        """Return the nearest allowed parallelism; key groups bound it even below the lower limit."""
        return min(max(self.lower, parallelism), self.highest)


def is_aligned(input_ship: Collection[str], source_partitions: int) -> bool:
    """Return whether a vertex is aligned at all."""
    return source_partitions > 0 or HASH in input_ship


def align(mode: Alignment, current: int, target: int, limits: ParallelismLimits, source_partitions: int) -> int:
    """Return the aligned parallelism of a vertex that :func:`is_aligned`.

    Args:
        mode: how.
        current: its parallelism.
        target: within the limits, but not aligned.
        limits: its limits.
        source_partitions: N if positive, else N is the number of key groups.
    """
    if mode is Alignment.OFF or target == current or target < 1:
        return target
    spread = min(source_partitions, INT_MAX) if source_partitions > 0 else limits.max_parallelism
    aligned = first_aligned(spread, current, target, limits, load_reducing=mode in _LOAD_REDUCING)
    if aligned is not None:
        return aligned
    if mode not in _LEGACY:
        return target
    relaxed = max(below_target(spread, target), limits.lower)
    turned = relaxed <= current if target > current else relaxed >= current
    return current if turned else relaxed


def first_aligned(
    spread: int, current: int, target: int, limits: ParallelismLimits, *, load_reducing: bool
) -> int | None:
    """Return the smallest divisor of N at or above the target, None if there is none.

    When scaling up it may be as high as the limits and N allow; when scaling down not above the current parallelism.

    Args:
        spread: N.
        current: the running parallelism.
        target: the parallelism wanted.
        limits: of the vertex.
        load_reducing: also take the first parallelism at which the floor of N / p is less than at the target.
    """
    end = min(spread, limits.highest)
    if target <= current:
        end = min(end, current)
    result = [divisor for divisor in divisors(spread) if divisor >= target]
    each = spread // target
    if load_reducing and each > 0:
        result.append(spread // each + 1)
    return min((p for p in result if p <= end), default=None)


def below_target(spread: int, target: int) -> int:
    """Return the smallest parallelism with the target's floor of N / p, or the next one below if that divides N."""
    more_loaded = spread // (spread // target + 1)
    return more_loaded if more_loaded == 0 or spread % more_loaded == 0 else more_loaded + 1


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a positive number, in no order."""
    small = [p for p in range(1, math.isqrt(number) + 1) if number % p == 0]
    return (*small, *(number // p for p in small))
