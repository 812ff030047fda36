"""The Big phase: enough parallelism at once, by doubling, Algorithm 1 of ContTune; and the bound on its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping


def big_step(parallelism: Mapping[str, int], p_max: int, *, limit: int | None = None) -> tuple[dict[str, int], int]:
    """Return what an under-provisioned job runs next, and p_max after it (lines 6-16 of Algorithm 1).

    Args:
        parallelism: operator -> running parallelism.
        p_max: largest parallelism observed in the job.
        limit: most that p_max may become.
    """
    bound = max(p_max, 1)
    if all(running >= bound for running in parallelism.values()):
        bound *= 2
    bound = bound if limit is None else min(bound, limit)
    # Deviation: no operator is scaled down by the phase that ends backpressure, should one run above p_max.
    return {name: max(bound, running) for name, running in parallelism.items()}, bound


def mean_reconfigurations_bound(
    p_max: int, tunings: int, explored: int, *, linear_steps: int = 3, failed: int = 0
) -> float:
    """Return the worst mean number of reconfigurations per tuning, Eq. 9 of ContTune.

    Args:
        p_max: reached by the Big phase.
        tunings: rho.
        explored: chi, tunings by conservative exploration.
        linear_steps: phi, most reconfigurations of the linear method in one tuning (3 for DS2).
        failed: omega, exploitations that left an operator too small; at most p_max.
    """
    big = math.log2(p_max) + tunings
    small = explored * linear_steps + (tunings - explored) + failed
    return (big + small) / tunings
