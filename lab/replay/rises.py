"""Whether rises are asked for ahead of the load that needs them, and how far, as is known in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.replay.workload import Workload, compute_curves, compute_source_gains
from models.arrays import Ints

_WITHIN_S = 7200
"""A rise is for a load that comes within this time; for any other it is left out."""


@dataclass(frozen=True, slots=True)
class ParallelismRequest:
    """A request for another parallelism.

    Attributes:
        at_s: seconds since the start.
        before, after: (O,) parallelism.
    """

    at_s: float
    before: Ints
    after: Ints


@dataclass(frozen=True, slots=True)
class RisesAhead:
    """Rises whose load came.

    Attributes:
        rises: how many.
        rises_ahead_share: of them that were asked for before the load exceeded what ran; None without any.
        rises_ahead_minutes: by how much these were, their median; None without any.
    """

    rises: int
    rises_ahead_share: float | None
    rises_ahead_minutes: float | None


def measure_rises(workload: Workload, asked: Sequence[ParallelismRequest], begin_s: float, end_s: float) -> RisesAhead:
    """Return how many rises of a time were asked for ahead of their load, true capacities of steps taken as known."""
    curves, gains = compute_curves(workload.spec), compute_source_gains(workload.spec)
    leads_min = []
    for one in asked:
        if not begin_s <= one.at_s < end_s or one.after.max() <= one.before.max():
            continue
        first = int(one.at_s // workload.step_s)
        rates = workload.rates_per_s[first : first + _WITHIN_S // workload.step_s]
        exceeds = (rates @ gains.T > curves[np.arange(len(curves)), one.before]).any(axis=1)
        if exceeds.any():
            leads_min.append(float(exceeds.argmax()) * workload.step_s / 60)
    ahead = [lead for lead in leads_min if lead > 0]
    return RisesAhead(
        rises=len(leads_min),
        rises_ahead_share=len(ahead) / len(leads_min) if leads_min else None,
        rises_ahead_minutes=float(np.median(ahead)) if ahead else None,
    )
