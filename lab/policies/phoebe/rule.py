"""Choosing a scale-out from predicted recovery times and latencies: Algorithm 1 of Phoebe and the rule in its logs.

Source: Geldenhuys et al., "Phoebe: QoS-aware distributed stream processing through anticipating dynamic workloads"
[Phoebe], Section III-C, and the decisions that its prototype logged (github.com/dos-group/phoebe, Apache-2.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.policies.phoebe.phoebe_options import RECOVERY_TARGET_S

NORMAL = 0
_NEAR = 0.05
# A scale-out one or two below the current one is not worth a reconfiguration (only in the prototype).
_SMALL_STEP_DOWN = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scale-out and what is predicted for it.

    Attributes:
        scale_out: workers, the parallelism of the whole job.
        recovery_s: R, from a failure until the backlog is worked off; NaN if not known.
        latency_ms: L at the projected throughput; NaN if not known.
        latency_class: 0 normal, 1 abnormal.
    """

    scale_out: int
    recovery_s: float
    latency_ms: float
    latency_class: int


@dataclass(frozen=True, slots=True)
class ScaleOutDecision:
    """The choice and how it came about.

    Attributes:
        scale_out: to run from now on.
        best: what the rule prefers, before small steps down are left out.
        valid_recovery: scale-outs that recover in time.
        valid: those of them with a normal latency.
    """

    scale_out: int
    best: int
    valid_recovery: tuple[int, ...]
    valid: tuple[int, ...]


def algorithm_1(candidates: Mapping[int, Candidate], *, target_s: float = RECOVERY_TARGET_S) -> int:
    """Return the smallest scale-out with R <= target and a normal latency, else the largest: Algorithm 1 of Phoebe.

    Args:
        candidates: scale-out -> its predictions.
        target_s: RC_tar.

    Raises:
        ValueError: no candidates.
    """
    _require_candidates(candidates)
    fits = (s for s in sorted(candidates) if candidates[s].recovery_s <= target_s and _is_normal(candidates[s]))
    return next(fits, max(candidates))


def logged_rule(
    candidates: Mapping[int, Candidate], current: int, *, target_s: float = RECOVERY_TARGET_S
) -> ScaleOutDecision:
    """Return what the prototype decides, which differs from Algorithm 1 in four ways.

    Deviation (of the prototype from the paper): the recovery time must be strictly below the target; where nothing is
    valid the best compromise is taken, not the largest scale-out; that compromise starts from the current one; and a
    scale-out one or two below the current one is not worth a reconfiguration.

    Args:
        candidates: scale-out -> its predictions.
        current: the running scale-out; when it is no candidate the nearest stands in for it in the compromise.
        target_s: RC_tar.

    Raises:
        ValueError: no candidates.
    """
    _require_candidates(candidates)
    in_time = tuple(s for s in sorted(candidates) if candidates[s].recovery_s < target_s)
    valid = tuple(s for s in in_time if _is_normal(candidates[s]))
    best = valid[0] if valid else compromise(candidates, current)
    small_step = current - _SMALL_STEP_DOWN <= best <= current
    return ScaleOutDecision(current if small_step else best, best, in_time, valid)


def compromise(candidates: Mapping[int, Candidate], current: int) -> int:
    """Return the larger of the scale-outs that nearly minimise recovery time and latency."""
    return max(
        nearly_smallest(candidates, current, lambda candidate: candidate.recovery_s),
        nearly_smallest(candidates, current, lambda candidate: candidate.latency_ms),
    )


def nearly_smallest(candidates: Mapping[int, Candidate], current: int, value_of: Callable[[Candidate], float]) -> int:
    """Scan ascending scale-outs from the current one, for a smaller value or a smaller scale-out of nearly the same.

    The best so far is replaced by one whose value differs by less than 5% if its scale-out is smaller, and by one
    whose value differs by more than 5% if its value is smaller; values that are not known replace nothing.
    """
    best = min(candidates, key=lambda s: (abs(s - current), s))
    for scale_out in sorted(candidates):
        observed, value = value_of(candidates[best]), value_of(candidates[scale_out])
        if math.isnan(observed) and not math.isnan(value):
            best = scale_out
            continue
        apart = _relative_difference(observed, value)
        if (apart < _NEAR and scale_out < best) or (apart > _NEAR and value < observed):
            best = scale_out
    return best


def _relative_difference(seen: float, value: float) -> float:
    """Return |seen - value| / value, 0 for equal values (two infinite ones as well)."""
    if seen == value:
        return 0.0
    return abs(seen - value) / value if value > 0 else math.inf


def _is_normal(candidate: Candidate) -> bool:
    return candidate.latency_class == NORMAL


def _require_candidates(candidates: Mapping[int, Candidate]) -> None:
    if not candidates:
        raise ValueError("there is no scale-out to choose from; give at least one candidate")
