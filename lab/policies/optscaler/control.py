"""The optimisation module, Section 4.3: the workers of every interval ahead, of which the first is carried out.

Objective (14) adds ``m / x`` of every interval, which grows as x falls, so the solution has the fewest workers that the
constraints leave: at least those that the chance constraint (13) asks for, changed by no more than (6) between two
intervals, within (10).  The fewest of every interval fit together, so they are the optimum and no solver is needed.

Deviation: the paper solves for real numbers (IPOPT) and rounds the first change; here numbers of workers are whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from scipy.special import ndtri

from lab.policies.optscaler.estimator import Estimator

_CEIL_SLACK = 1e-9


def required_workers(
    estimator: Estimator, peaks_per_s: Sequence[float], target_use: float, confidence: float
) -> list[int] | None:
    """Return the workers that each interval needs, Eq. 12 and 13; None where no number of them keeps the target.

    An interval has to hold the next one's peak, too: workers are there one interval ahead, (8).

    Args:
        estimator: of the utilisation.
        peaks_per_s: (D + 1,) highest load of each interval, records/s.
        target_use: c*.
        confidence: alpha.
    """
    score = float(ndtri(confidence))
    spare = target_use - estimator.base - score * estimator.error_base
    if not spare > 0:
        return None
    per_record = estimator.slope + score * estimator.error_slope
    return [math.ceil(max(pair) * per_record / spare - _CEIL_SLACK) for pair in pairwise(peaks_per_s)]


def first_workers(required: Sequence[int], running: int, change_max: int, workers_min: int, workers_max: int) -> int:
    """Return x of the first interval: the fewest from which every later interval's need can be reached.

    Args:
        required: (D,) workers that each interval needs.
        running: x of the interval before.
        change_max: workers that an interval can add or remove.
        workers_min: X_min.
        workers_max: X_max.
    """
    need = max(min(count, workers_max) - ahead * change_max for ahead, count in enumerate(required))
    nearest = min(max(need, running - change_max), running + change_max)
    return min(max(nearest, workers_min), workers_max)
