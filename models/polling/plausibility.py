"""Figures of a single poll: a counter that jumps, a backlog that nobody has.  Two in a row that agree are believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from models.arrays import Bools, Floats
from models.policies.observations import Observations

SPIKE_FACTOR: Final = 4.0
"""A rate so many times above both of its neighbours, and above all rates that two bins in a row had, is no rate."""
AGREE_FACTOR: Final = 1.5
_AGED_FACTOR: Final = 2.0  # the age of a backlog is an estimate: records / rate
_RECURS: Final = 3


def find_single_spikes(rates: Floats) -> Bools:
    """Return (n, T) where a rate, (n, T), stands alone far above the measured rates around it.

    The last bin has no neighbour after it: until one agrees it is not believed either.  A height that recurs, in three
    bins or more, is a load that comes in bursts; so is one between bins without any.
    """
    result = np.zeros(rates.shape, bool)
    for row, values in enumerate(rates):
        known = np.flatnonzero(np.isfinite(values))
        if len(known) < _RECURS:
            continue
        observed = values[known]
        pairs = np.minimum(observed[1:], observed[:-1])  # what two bins in a row had
        around = np.maximum(np.append(0.0, observed[:-1]), np.append(observed[1:], 0.0))
        alone = (observed > SPIKE_FACTOR * around) & (around > 0) & (observed > SPIKE_FACTOR * pairs.max())
        heights = observed[alone]
        recurs = np.abs(np.log(heights[:, None] / heights[None, :])) < math.log(2.0)
        result[row, known[alone]] = recurs.sum(axis=1) < _RECURS
    return result


def agree(observations: Observations, sources: Sequence[int]) -> bool:
    """Return whether the last two undisturbed windows show the same rates and a backlog no older than it can be by now.

    Sources are the places of the sources' columns.
    """
    calm = np.flatnonzero(~observations.disturbed)[-2:]
    if len(calm) < 2:
        return False
    two = observations.rows(calm)
    arrived, taken = two.target_data_rate_per_s[:, sources], two.processing_rate_per_s[:, sources]
    rates = np.where(np.isfinite(arrived), arrived, taken)
    elapsed_s = float(two.window_start_s[1] - two.window_start_s[0])
    aged_ms = np.nan_to_num(two.latency_ms[:, sources], nan=0.0)
    is_aged = aged_ms[1] <= _AGED_FACTOR * (aged_ms[0] + 1000.0 * elapsed_s)
    low, high = rates.min(axis=0), rates.max(axis=0)
    same = (high <= AGREE_FACTOR * low) | ~np.isfinite(rates).all(axis=0)
    return bool((same & is_aged).all())


def limit_rise(wanted: Mapping[str, int], running: Mapping[str, int], share: float) -> dict[str, int]:
    """Return what is wanted with no operator grown by more than a share of what runs, one subtask at least.

    A share of 1 is for twice as many at most; an operator that does not run is left as wanted.
    """
    most = {name: count + max(math.floor(share * count), 1) for name, count in running.items()}
    return {name: min(count, most.get(name, count)) for name, count in wanted.items()}
