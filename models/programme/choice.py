"""The decision of an evaluation with the figures that it was made from, and the sentence that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from models.programme.horizon import EVALUATIONS
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import STEP_S
from models.programme.problem import CostsToGo, CostTerms, Sizes
from models.scheduling.figures import format_clock, format_count, format_duration, format_late, format_rate

_SHOWN: Final = 24  # steps: two hours
_SCORE: Final = 1.2816  # of the band that is shown, 10% to 90%
_LEAST_SHOWN: Final = 0.05  # with one digit
_SOURCES: Final = {
    "": "level held",
    "champion": "the forecast's shape at the measured height",
    "yesterday": "yesterday's shape at the measured height",
    "profile": "the usual day's shape at the measured height",
}


class ExpectedCosts(NamedTuple):
    """What is expected after a decision while it is compared with staying.

    Attributes:
        late_minutes: in that time.
        slot_hours: of whole TaskManagers.
    """

    late_minutes: float
    slot_hours: float


@dataclass(frozen=True, slots=True)
class ProgrammeDecision:
    """A decision.

    Attributes:
        place: of the size among those that were compared; 0 to stay.
        slots_from, slots_to: before and after.
        saved: what the other decision would cost more until ``until_s``, late minutes and stops included: staying, or
            the best change where it stays; negative where that is cheaper, but late if the load is as expected.
        saved_unit: of that: slot-hours, or late minutes where slots cost nothing.
        other_slots: of that best change; those of before where nothing but staying was possible.
        until_s: end of the programme's horizon, epoch seconds.
        load_low_per_s, load_high_per_s: band of the load of the next two hours, 10% to 90% at its lowest and highest.
        load_per_s: highest load expected in that time.
        capacity_per_s: what the size sustains, with caution.
        lasts_s: for so long a decision is compared with staying.
        late_minutes, stay_late_minutes: expected in that time with what is decided later, and by staying all the time.
        age_s: of the backlog.
        is_behind: whether that is half of what is late, or more.
        path: what the load is expected to follow; empty where its level is held.
        forecast_weight: share of the plan's forecast in that.
        forecast_missed: usual relative error of that forecast an hour ahead, NaN without one.
        event: what events that people know of make of the load; empty without any.
        wait_s: how long the change waits for slots and a checkpoint, while the job goes on as before.
        saved_slot_hours: of whole TaskManagers in that time.
    """

    place: int
    slots_from: int
    slots_to: int
    saved: float
    saved_unit: str
    other_slots: int
    until_s: int
    load_low_per_s: float
    load_high_per_s: float
    load_per_s: float
    capacity_per_s: float
    lasts_s: int
    late_minutes: float
    stay_late_minutes: float
    age_s: float
    is_behind: bool
    path: str
    forecast_weight: float
    forecast_missed: float
    event: str = ""
    wait_s: float = 0.0
    saved_slot_hours: float = 0.0


def find_best(values: CostsToGo) -> int:
    """Return the place of the cheapest decision, 0 to stay."""
    best = _find_best_change(values)
    return best if best and values.stay > values.go[best] else 0


def _find_best_change(values: CostsToGo) -> int:
    """Return the place of the cheapest change, whatever staying costs; 0 where only staying is possible."""
    return 1 + int(values.go[1:].argmin()) if len(values.go) > 1 else 0


def form_decision(
    sizes: Sizes,
    values: CostsToGo,
    outlook: LoadOutlook,
    terms: CostTerms,
    *,
    expected: tuple[ExpectedCosts, ExpectedCosts],
    lasts_s: int,
    age_s: float,
    now_s: int,
    place: int,
) -> ProgrammeDecision:
    """Return a decision with its figures.

    Args:
        sizes: of the job.
        values: of the programme.
        outlook: of the load.
        terms: of the job.
        expected: after the decision, and by staying at the running size.
        lasts_s: in this time.
        age_s: of the oldest record.
        now_s: epoch seconds.
        place: of the size that is decided for.
    """
    best = _find_best_change(values)
    gain = values.stay - float(values.go[best]) if best else 0.0
    saved = values.stay - float(values.go[place]) if place else -gain
    unit, price = ("slot-hours", 60 * terms.slot_price) if terms.slot_price else ("late minutes", terms.late_price)
    after, staying = expected
    return ProgrammeDecision(
        place=place,
        slots_from=round(float(sizes.slots[0])),
        slots_to=round(float(sizes.slots[place])),
        saved=saved / (price or 1.0),
        saved_unit=unit,
        other_slots=round(float(sizes.slots[best])),
        until_s=now_s + EVALUATIONS * STEP_S,
        load_low_per_s=float(outlook.quantile_per_s(-_SCORE, _SHOWN).min()),
        load_high_per_s=float(outlook.quantile_per_s(_SCORE, _SHOWN).max()),
        load_per_s=float(outlook.quantile_per_s(0.0, _SHOWN).max()),
        capacity_per_s=float(np.exp(sizes.log_capacity[place, 0])),
        lasts_s=lasts_s,
        late_minutes=after.late_minutes,
        stay_late_minutes=staying.late_minutes,
        age_s=age_s,
        is_behind=age_s > terms.late_after_s / 2,
        path=outlook.followed.source,
        forecast_weight=outlook.followed.forecast_weight,
        forecast_missed=outlook.forecast_missed,
        event=outlook.event,
        wait_s=terms.find_wait_s(*sizes.slots[[0, place]].tolist()),
        saved_slot_hours=staying.slot_hours - after.slot_hours,
    )


def describe_choice(choice: ProgrammeDecision, now_s: int) -> str:
    """Return the reason of a decision: a short sentence, and after it the figures that it was made from."""
    low, high = format_rate(choice.load_low_per_s), format_rate(choice.load_high_per_s)
    followed = _SOURCES[choice.path]
    if not math.isnan(choice.forecast_missed):
        followed += f"; the forecast misses by {choice.forecast_missed:.0%}, weight {choice.forecast_weight:g}"
    if choice.event:
        followed += f"; {choice.event}"
    late, stay_late = format_late(choice.late_minutes), format_late(choice.stay_late_minutes)
    lateness = f"{late} expected in {format_duration(choice.lasts_s)}"
    if choice.place and late != stay_late:
        lateness += f", {stay_late} by staying"
    carry = f"{format_count(choice.slots_to, 'slot')} {'carries' if choice.slots_to == 1 else 'carry'}"
    parts = [
        _describe_purpose(choice, high),
        lateness,
        f"load of {low} to {high}/s for 2 h ({followed})",
        f"{carry} {format_rate(choice.capacity_per_s)}/s",
        _describe_cost(choice, now_s),
        f"in force {format_duration(choice.wait_s)} after its request" if choice.place and choice.wait_s else "",
    ]
    return "; ".join(filter(None, parts))


def _describe_purpose(choice: ProgrammeDecision, high: str) -> str:
    """Return what is done, why, and what that saves or prevents, in twelve words at most."""
    if not choice.place:
        stays = f"{format_count(choice.slots_to, 'slot')} {'stays' if choice.slots_to == 1 else 'stay'}"
        return f"{stays}: " + (f"records wait for {choice.age_s:.0f} s" if choice.is_behind else f"load up to {high}/s")
    change = f"{choice.slots_from} -> {format_count(choice.slots_to, 'slot')}"
    prevented = choice.stay_late_minutes - choice.late_minutes
    gain = f"prevents {format_late(prevented)}" if prevented >= 1 else "cheaper than staying"
    if choice.slots_to < choice.slots_from and choice.saved_slot_hours >= _LEAST_SHOWN:
        gain = f"saves {choice.saved_slot_hours:.1f} slot-hours"
    elif choice.is_behind:
        return f"{change} to catch up: {gain}"
    return f"{change}: load up to {high}/s, {gain}"


def _describe_cost(choice: ProgrammeDecision, now_s: int) -> str:
    """Return what the other decision would cost; empty where there is none."""
    if not choice.place and choice.other_slots == choice.slots_to:
        return ""
    other = "staying costs" if choice.place else f"{choice.other_slots} would cost"
    amount = f"{abs(choice.saved):.1f}" if abs(choice.saved) >= _LEAST_SHOWN else "less than 0.1"
    more, until = f"{amount} {choice.saved_unit}", format_clock(choice.until_s, now_s)
    if choice.saved < 0:
        return f"{other} {more} less by {until}, and is late if the load is as expected"
    return f"{other} {more} more by {until}, late minutes and stops at their prices"
