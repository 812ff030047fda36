"""What came of an event that people knew of, and what to write for the next one like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats
from models.forecasting.known_events import KnownEvent

LEAST_SHARE: Final = 0.25
"""Share of an event that has to be measured before it says anything."""
_LEAST_WIDTH: Final = 1.1  # of a range that is proposed: no two events are the same
_PARTS: Final = 12  # of an event, whose factors show how far it varied


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """What came of an event at one source.

    Attributes:
        came: factor over what was forecast without it, or records/s of an event of a given rate.
        low, high: 10% and 90% of its parts, at least a tenth around it: with ``came`` what to write next time.
        is_within: whether it lay in the range that was given.
    """

    came: float
    low: float
    high: float
    is_within: bool

    def propose(self, is_rate: bool) -> str:
        """Return what to write for the next one."""
        key = "rate_per_s" if is_rate else "factor"
        return f"{key} = {_round(self.came)}, low = {_round(self.low)}, high = {_round(self.high)}"


def judge_event(event: KnownEvent, came_per_s: Floats, usual_per_s: Floats, bins: int) -> EventOutcome | None:
    """Return what came of an event; None where too little was measured, or nothing usual is known.

    ``came_per_s`` and the forecast's medians without the event are (N,), of those of its ``bins`` that were measured.
    """
    known = np.isfinite(came_per_s) & np.isfinite(usual_per_s) & ((usual_per_s > 0) | event.is_rate)
    if known.sum() < max(LEAST_SHARE * bins, 1) or not came_per_s[known].sum() > 0:
        return None
    actual, usual = came_per_s[known], np.ones(int(known.sum())) if event.is_rate else usual_per_s[known]
    whole, count = float(actual.sum() / usual.sum()), min(_PARTS, len(actual))
    pairs = zip(np.array_split(actual, count), np.array_split(usual, count), strict=True)
    low, high = (float(one) for one in np.quantile([own.sum() / other.sum() for own, other in pairs], [0.1, 0.9]))
    within = event.low <= whole <= event.high
    return EventOutcome(whole, min(low, whole / _LEAST_WIDTH), max(high, whole * _LEAST_WIDTH), within)


def _round(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
