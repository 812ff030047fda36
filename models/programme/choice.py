"""The decision of an evaluation with the figures that it was made from, and the sentence that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.programme.error_shapes import cumulate
from models.programme.horizon import EVALUATIONS
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import STEP_S
from models.programme.programme import Sizes, Terms, Values
from models.scheduling.reason import format_clock, format_rate

_SHOWN: Final = 24  # steps: two hours
_SCORE: Final = 1.2816  # of the band that is shown, 10% to 90%
_LEAST_SHARE: Final = 0.005
_SOURCES: Final = {
    "": "level held",
    "champion": "the forecast's shape at the measured height",
    "yesterday": "yesterday's shape at the measured height",
    "profile": "the usual day's shape at the measured height",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision.

    Attributes:
        place: of the size among those that were compared; 0 to stay.
        slots_from, slots_to: before and after.
        saved: what the other decision would cost more until ``until_s``: staying, or the best change where it stays;
            negative where that is cheaper, but late if the load is as expected.
        other_slots: of that best change; those of before where nothing but staying was possible.
        until_s: end of the programme's horizon, epoch seconds.
        load_low_per_s, load_high_per_s: band of the load of the next two hours, 10% to 90% at its lowest and highest.
        load_per_s: highest load expected in that time.
        capacity_per_s: what the size sustains, with caution.
        late_chance: highest probability in that time that the load exceeds the capacity; 1 of a job that is late.
        path: what the load is expected to follow; empty where its level is held.
        forecast_weight: share of the plan's forecast in that.
        forecast_missed: usual relative error of that forecast an hour ahead, NaN without one.
        event: what events that people know of make of the load; empty without any.
    """

    place: int
    slots_from: int
    slots_to: int
    saved: float
    other_slots: int
    until_s: int
    load_low_per_s: float
    load_high_per_s: float
    load_per_s: float
    capacity_per_s: float
    late_chance: float
    path: str
    forecast_weight: float
    forecast_missed: float
    event: str = ""


def choose_size(
    sizes: Sizes,
    values: Values,
    outlook: LoadOutlook,
    terms: Terms,
    *,
    age_s: float,
    now_s: int,
    place: int | None = None,
) -> Choice:
    """Return the cheapest decision with its figures.

    Args:
        sizes: of the job.
        values: of the programme.
        outlook: of the load.
        terms: of the job.
        age_s: of the oldest record.
        now_s: epoch seconds.
        place: of the size that was decided for already; None for the cheapest.
    """
    best = 1 + int(values.go[1:].argmin()) if len(values.go) > 1 else 0
    gain = values.stay - float(values.go[best]) if best else 0.0
    place = (best if gain > 0 else 0) if place is None else place
    saved = values.stay - float(values.go[place]) if place else -gain
    capacity = float(np.exp(sizes.log_capacity[place, 0]))
    spread = np.hypot(outlook.sd[:_SHOWN], sizes.sd[place] * capacity / (capacity + outlook.offset))
    at = (math.log(capacity + outlook.offset) - outlook.mean[:_SHOWN]) / spread
    chance = float(1.0 - np.interp(at, *cumulate(outlook.shape)).min())
    return Choice(
        place=place,
        slots_from=round(float(sizes.slots[0])),
        slots_to=round(float(sizes.slots[place])),
        saved=saved,
        other_slots=round(float(sizes.slots[best])),
        until_s=now_s + EVALUATIONS * STEP_S,
        load_low_per_s=float(outlook.quantile_per_s(-_SCORE, _SHOWN).min()),
        load_high_per_s=float(outlook.quantile_per_s(_SCORE, _SHOWN).max()),
        load_per_s=float(outlook.quantile_per_s(0.0, _SHOWN).max()),
        capacity_per_s=capacity,
        late_chance=1.0 if age_s > terms.late_after_s else chance,
        path=outlook.followed.source,
        forecast_weight=outlook.followed.forecast_weight,
        forecast_missed=outlook.forecast_missed,
        event=outlook.event,
    )


def describe_choice(choice: Choice, now_s: int) -> str:
    """Return the reason of a decision: differences of the figures that it was made from."""
    low, high = format_rate(choice.load_low_per_s), format_rate(choice.load_high_per_s)
    followed = _SOURCES[choice.path]
    if not math.isnan(choice.forecast_missed):
        followed += f"; the forecast misses by {choice.forecast_missed:.0%}, weight {choice.forecast_weight:g}"
    if choice.event:
        followed += f"; {choice.event}"
    is_change = choice.place > 0
    parts = [
        f"{choice.slots_from} -> {choice.slots_to} slots" if is_change else f"{choice.slots_to} slots stay",
        f"load expected at {low} to {high}/s for 2 h ({followed}); "
        f"{choice.slots_to} carry {format_rate(choice.capacity_per_s)}/s",
    ]
    until = format_clock(choice.until_s, now_s)
    other = "staying costs" if is_change else f"{choice.other_slots} would cost"
    costs = f"{other} {choice.saved:.2f} more by {until}"
    if choice.saved < 0:
        costs = f"{other} {-choice.saved:.2f} less by {until}, and is late if the load is as expected"
    if not is_change and choice.other_slots == choice.slots_to:
        costs = ""
    risk = "less than 1%" if choice.late_chance < _LEAST_SHARE else f"{choice.late_chance:.0%}"
    return ": ".join(parts) + "".join(f"; {part}" for part in (costs, f"{risk} risk of being late") if part)
