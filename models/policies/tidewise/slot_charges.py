"""What a job pays for slots that are short in its cluster, as its plan leaves it to the evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from include.utc import HOUR_S
from models.arrays import Floats
from models.policies.protocol import Situation
from models.programme.load_paths import STEP_S
from models.scheduling.slot_problem import list_bins, overlap_minutes

_REACH_S: Final = 12 * HOUR_S  # what an evaluation looks at, until the plan expires
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class SlotCharges:
    """Prices of slots on top of their own.

    Attributes:
        start_s, bin_s: of the bins, epoch seconds and s.
        per_minute: price of a slot for a minute in each bin; empty where slots are not short.
    """

    start_s: int = 0
    bin_s: int = 0
    per_minute: tuple[float, ...] = ()

    @classmethod
    def of(cls, situation: Situation) -> SlotCharges:
        """Return what the job of a situation pays over its plan."""
        options, as_of_s = situation.options, situation.as_of_s
        bins = len(list_bins(as_of_s, options)) - 1
        prices = situation.slot_prices.of_job(situation.seed, bins)
        if not prices.any():
            return cls()
        rounded = tuple(prices.round(_DIGITS).tolist())
        return cls(as_of_s // options.bin_s * options.bin_s, options.bin_s, rounded)

    def shorten(self) -> SlotCharges:
        """Return the prices of the hours that evaluations look at."""
        near = self.per_minute[: -(-_REACH_S // self.bin_s)] if self.bin_s else ()
        return SlotCharges(self.start_s, self.bin_s, near) if any(near) else SlotCharges()

    def per_slot(self, begin_s: int, steps: Sequence[int]) -> Floats | None:
        """Return (J,) what a slot costs in steps of so many evaluations each; None where slots are not short."""
        if not self.per_minute:
            return None
        edges_s = begin_s + STEP_S * np.concatenate([np.zeros(1), np.cumsum(steps)])
        bins_s = self.start_s + self.bin_s * np.arange(len(self.per_minute) + 1.0)
        return np.asarray(overlap_minutes(edges_s, bins_s) @ np.array(self.per_minute))

    def is_short(self, begin_s: int, end_s: int) -> bool:
        """Whether slots are short at some time."""
        return bool(
            any(
                price > 0
                for place, price in enumerate(self.per_minute)
                if begin_s < self.start_s + self.bin_s * (place + 1) and self.start_s + self.bin_s * place < end_s
            )
        )
