"""A job's programme as the fleet's allocation of slots reads it, and how its steps meet the bins of the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.settings import Planner
from include.utc import HOUR_S, MINUTE_S
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class CostTables:
    """One job's costs, the input of the shortest path.

    Attributes:
        slots: (K,) of each candidate.
        bin_cost: (T, K) cost of spending a bin in a candidate, without what its slots cost.
        switch: (T, K) cost of changing to a candidate at the begin of a bin.
        minutes: (T,) length of each bin, the first from the time of planning on.
        slot_price: cost of one slot for a minute.
    """

    slots: Ints
    bin_cost: Floats
    switch: Floats
    minutes: Floats
    slot_price: float

    def cost_per_bin(self, prices: Floats | float = 0.0) -> Floats:
        """Return (T, K) what each bin costs, slots included; ``prices``, (T,), come on top of a slot's own."""
        per_slot = (self.slot_price + prices) * self.minutes
        return self.bin_cost + per_slot[:, None] * self.slots[None, :]


@dataclass(frozen=True, slots=True)
class SlotProblem:
    """One job's costs, and when its steps are.

    Attributes:
        costs: of T steps.
        edges_s: (T + 1,) beginning of each step and end of the last, seconds from the time of planning on.
    """

    costs: CostTables
    edges_s: Floats


def list_bins(as_of_s: int, options: Planner) -> Floats:
    """Return (G + 1,) the edges of the bins in which a budget holds, seconds from the time of planning on.

    >>> list_bins(1500, Planner(bin_s=600, horizon_h=1)).tolist()
    [0.0, 300.0, 900.0, 1500.0, 2100.0, 2700.0, 3300.0, 3900.0]
    """
    start_s = as_of_s // options.bin_s * options.bin_s
    bins = -(-(as_of_s + options.horizon_h * HOUR_S - start_s) // options.bin_s)
    edges = start_s + options.bin_s * np.arange(bins + 1.0) - as_of_s
    return np.asarray(np.maximum(edges, 0.0))


def overlap_minutes(edges_s: Floats, bins_s: Floats) -> Floats:
    """Return (T, G) how long each step lies in each bin, minutes.

    >>> overlap_minutes(np.array([-300.0, 300.0, 900.0]), np.array([0.0, 600.0, 1200.0])).tolist()
    [[5.0, 0.0], [5.0, 5.0]]
    """
    begin = np.maximum(edges_s[:-1, None], bins_s[None, :-1])
    end = np.minimum(edges_s[1:, None], bins_s[None, 1:])
    return np.asarray(np.maximum(end - begin, 0.0) / MINUTE_S)
