"""Capacity models that what is measured now proves wrong."""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.policies.observations import Observations
from models.scheduling.expectation import Outlook
from models.scheduling.shortage import CapacityMismatch

_LATEST: Final = 2  # windows: a single one proves nothing
_MARGIN: Final = 1.1


def find_doubts(outlook: Outlook, running: Ints, observations: Observations) -> tuple[CapacityMismatch, ...]:
    """Return the operators that processed more in the last undisturbed windows than their model allows at ``running``.

    Windows of other operators, or in another order, tell nothing.
    """
    if observations.processing_rate_per_s.shape[1] != len(running):
        return ()
    shown = (observations.parallelism == running) | (observations.parallelism < 1)
    rows = np.flatnonzero(~observations.disturbed & shown.all(axis=1))[-_LATEST:]
    if len(rows) < _LATEST:  # a single window proves nothing
        return ()
    least: Floats = observations.processing_rate_per_s[rows].min(axis=0)
    doubts = []
    for row, name in enumerate(outlook.demand.operators):
        if name in outlook.bounds and np.isfinite(least[row]):
            bounds = outlook.bounds[name]
            at = bounds.index_of(running[row])
            most = float(bounds.mean_per_s[at] + outlook.z * bounds.sd_per_s[at])
            if least[row] > most * _MARGIN:
                doubts.append(CapacityMismatch(name, float(least[row]), most))
    return tuple(doubts)
