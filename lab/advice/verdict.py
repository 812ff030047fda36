"""What is advised for a job, with a sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from include.policy_catalogue import WITHOUT_PLANS
from include.settings.planner import RECOVERS
from lab.advice.appraisal import CONSTANT, RAN, Option
from lab.backtest.daily_costs import DailyCosts
from models.intervals import LEAST_DAYS, Estimate, estimate

TITLES = {
    RAN: "what ran",
    CONSTANT: "the best constant",
    RECOVERS: "Tidewise",
    WITHOUT_PLANS: "Tidewise, without plans",
    "flink_autoscaler": "the operator's autoscaler, defaults",
    "flink_autoscaler_tuned": "the operator's autoscaler, tuned",
}
LEAST_REPORTED = 0.05  # a smaller difference is shown as none
MARGIN = 0.01  # another option is named when it is cheaper by more


class Advice(StrEnum):
    """What is advised.

    TAKE: Tidewise saves, and nothing else saves more.
    OTHER: something else would have cost less than Tidewise; where also Tidewise saves, the sentence says so.
    KEEP: what ran costs less than Tidewise.
    OPEN: the days do not tell Tidewise from what ran, or are too few to tell anything.
    """

    TAKE = "take"
    OTHER = "other"
    KEEP = "keep"
    OPEN = "open"

    @property
    def is_against(self) -> bool:
        """Whether it advises against Tidewise."""
        return self in {Advice.OTHER, Advice.KEEP}


@dataclass(frozen=True, slots=True)
class Difference:
    """What an option saves a day against another; negative: costs more.

    Attributes:
        cost: slots, late minutes and rescales in slot-hours.
        slot_hours, late_minutes, rescales: each alone.
    """

    cost: Estimate
    slot_hours: Estimate
    late_minutes: Estimate
    rescales: Estimate


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is advised for a job.

    Attributes:
        advice: which.
        saving: of Tidewise against what ran; None where Tidewise failed on the job.
        better: name of the option that costs least, if it is not Tidewise.
        sentence: why.
    """

    advice: Advice
    saving: Difference | None
    better: str | None
    sentence: str


def subtract(costs: DailyCosts, other: DailyCosts) -> Difference:
    """Return what ``costs`` save against ``other``: paired by day and seed, with the same failures and noise."""
    return Difference(
        estimate(other.cost - costs.cost),
        estimate(other.slot_hours - costs.slot_hours),
        estimate(other.late_minutes - costs.late_minutes),
        estimate(other.rescales - costs.rescales),
    )


def judge(options: Sequence[Option]) -> Verdict:
    """Return what is advised of the first policy, against what ran and what is not Tidewise's own.

    Args:
        options: what ran first, then the policies with Tidewise's first, then the best constant.
    """
    by_name = {one.name: one.costs for one in options}
    own = options[1].name
    ran, mine = by_name[RAN], by_name[own]
    if ran is None or mine is None:
        failed = options[1] if mine is None else options[0]
        return Verdict(Advice.OPEN, None, None, f"{title_of(failed.name)} could not be replayed: {failed.detail}")
    saving = subtract(mine, ran)
    if len(mine.cost) < LEAST_DAYS:
        text = f"So few days ({len(mine.cost)}) tell nothing for sure. In them Tidewise would {describe(saving)}."
        return Verdict(Advice.OPEN, saving, None, text)
    no_others = {own, RAN, WITHOUT_PLANS}
    others = {name: costs for name, costs in by_name.items() if name not in no_others and costs is not None}
    better = find_better(mine, others)
    if better is not None:
        return Verdict(Advice.OTHER, saving, better, _say_other(better, others[better], mine, saving, options))
    if saving.cost.high < 0:
        return Verdict(Advice.KEEP, saving, RAN, f"What ran cost less: Tidewise would {describe(saving)}.")
    if saving.cost.low <= 0:
        text = f"These days do not tell Tidewise from what ran: it would {describe(saving)}, which may be chance."
        return Verdict(Advice.OPEN, saving, None, text)
    mean_slots = f"{mine.slot_hours.mean() / 24.0:.1f} slots on average where {ran.slot_hours.mean() / 24.0:.1f} ran"
    return Verdict(Advice.TAKE, saving, None, f"Tidewise runs {mean_slots}; it would {describe(saving)}.")


def find_better(mine: DailyCosts, others: Mapping[str, DailyCosts]) -> str | None:
    """Return the cheapest of the others if it is cheaper than a policy beyond margin and chance."""
    if not others:
        return None
    name = min(others, key=lambda one: float(others[one].cost.mean()))
    gain = estimate(mine.cost - others[name].cost)
    return name if gain.low > 0 and gain.mean > MARGIN * float(mine.cost.mean()) else None


def _say_other(better: str, costs: DailyCosts, mine: DailyCosts, saving: Difference, options: Sequence[Option]) -> str:
    gain = 1.0 - float(costs.cost.mean()) / max(float(mine.cost.mean()), 1e-9)
    detail = next(one.detail for one in options if one.name == better)
    name = title_of(better)
    what = f"A constant {detail}, known in hindsight," if better == CONSTANT else f"{name[0].upper()}{name[1:]}"
    saves = "still saves" if saving.cost.low > 0 else "does not surely save"
    return (
        f"{what} would have cost {gain:.0%} less than Tidewise. Against what ran Tidewise {saves}: {describe(saving)}."
    )


def describe(saving: Difference) -> str:
    """Return what a difference is made of, per day: ``save 12.0 slot-hours a day, with 0.3 more late minutes``."""
    parts = {"slot-hours": saving.slot_hours, "late minutes": saving.late_minutes, "rescales": saving.rescales}
    saved = [f"{one.mean:,.1f} {unit}" for unit, one in parts.items() if one.mean >= LEAST_REPORTED]
    more = [f"{-one.mean:,.1f} more {unit}" for unit, one in parts.items() if one.mean <= -LEAST_REPORTED]
    if saved:
        return f"save {join(saved)} a day{f', with {join(more)}' if more else ''}"
    return f"take {join(more)} a day" if more else "change nothing"


def join(parts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def title_of(name: str) -> str:
    """Return the name of an option for people."""
    return TITLES.get(name, name)
