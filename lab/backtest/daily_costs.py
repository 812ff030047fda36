"""What each day of a replay took: slots, late minutes and rescales, and all of them in one unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from include.utc import DAY_S
from lab.replay.conditions import Conditions, Prices
from lab.replay.scores import WindowCosts
from models.arrays import Floats, Ints

T = TypeVar("T", float, Floats)


@dataclass(frozen=True, slots=True)
class DailyCosts:
    """What each day took under one policy; D days, S seeds, all (D, S).

    Attributes:
        slot_hours, late_minutes, rescales: of each day.
        cost: of slots, late minutes and rescales in one unit, as planning weighs them.
    """

    slot_hours: Floats
    late_minutes: Floats
    rescales: Floats
    cost: Floats

    @classmethod
    def of(cls, ledger: WindowCosts, rows: slice, bins: slice, conditions: Conditions, slots_max: int) -> DailyCosts:
        """Return what each of the whole days in some bins took."""
        bin_s, prices = conditions.cadence.window_s, conditions.prices

        def by_day(values: Floats | Ints) -> Floats:
            chosen = np.asarray(values[bins, rows], float)
            return np.asarray(chosen.reshape(-1, DAY_S // bin_s, chosen.shape[1]).sum(axis=1))

        slot_hours, late_minutes = by_day(ledger.slots) * bin_s / 3600.0, by_day(ledger.late_s) / 60.0
        rescales = by_day(ledger.rescales)
        return cls(slot_hours, late_minutes, rescales, weigh(slot_hours, late_minutes, rescales, prices, slots_max))


def weigh(slot_hours: T, late_minutes: T, rescales: T, prices: Prices, slots_max: int) -> T:
    """Return slots, late minutes and rescales in one unit: slot-hours that cost as much, as planning weighs them."""
    per_slot_hour = max(60.0 * prices.slots / slots_max, 1e-9)
    return slot_hours + (prices.late * late_minutes + prices.rescale * rescales) / per_slot_hour
