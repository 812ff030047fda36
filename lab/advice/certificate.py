"""A job's certificate: what its days cost beside the least that any policy could have paid for the load that came.

What ran is taken as it was measured.  The least is the lower bound of the replay, on the job's replica and with the
failures that happened; capacities of the replica are known within an interval, and so is the least.  What is more than
it, the regret, has three parts: slots, late minutes, rescales; the largest is the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.settings import Settings
from lab.advice.history import History
from lab.backtest.daily_costs import DailyCosts
from lab.backtest.stretch import Stretch
from lab.backtest.subject import DAY_BINS, HistoryError, Subject
from lab.replay.bound.solve_bound import LeastCost, solve_least
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Prices
from lab.replay.replay_run import ReplayRun
from models.bundle.job_models import JobModels

INTERVAL_Z: Final = 1.2816
"""Of an interval of 80% of the capacities."""
LEAST_MEASURED: Final = 0.5
"""Share of the days that has to be measured."""
_LEAST_SHARE: Final = 0.05  # a smaller regret has no reason


class NotMeasuredError(ValueError):
    """Too little is known of what ran; the message says how little."""


@dataclass(frozen=True, slots=True)
class DayCost:
    """What a day takes, in the planner's own prices.

    Attributes:
        slot_hours, late_minutes, rescales: of a day.
        of_slots, of_lateness, of_rescales: what these cost.
    """

    slot_hours: float
    late_minutes: float
    rescales: float
    of_slots: float
    of_lateness: float
    of_rescales: float

    @classmethod
    def of(cls, slot_hours: float, late_minutes: float, rescales: float, prices: Prices, slots_max: int) -> DayCost:
        """Weigh what a day takes: cost per minute as in :func:`lab.replay.scores.compute_score`."""
        of_slots = prices.slots * 60.0 * slot_hours / slots_max
        return cls(
            *(slot_hours, late_minutes, rescales, of_slots), prices.late * late_minutes, prices.rescale * rescales
        )

    @property
    def cost(self) -> float:
        """All of it."""
        return self.of_slots + self.of_lateness + self.of_rescales


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a job's days cost, and the least.

    Attributes:
        days: whole days that are compared.
        measured_share: of the time, from which a day's cost is taken.
        ran: a day of what ran, as measured.
        best: a day of the bound's own choices, on the replica.
        least: a day's bound with the capacities as expected.
        least_low, least_high: with capacities at the ends of their interval, the lower first.
        reason: why it costs more; empty where it hardly does.
    """

    days: int
    measured_share: float
    ran: DayCost
    best: DayCost
    least: float
    least_low: float
    least_high: float
    reason: str

    @property
    def ratio(self) -> float:
        """Cost over the least."""
        return self.ran.cost / max(self.least, 1e-9)

    @property
    def ratio_low(self) -> float:
        """Low end of it."""
        return self.ran.cost / max(self.least_high, 1e-9)

    @property
    def ratio_high(self) -> float:
        """High end of it."""
        return self.ran.cost / max(self.least_low, 1e-9)

    @property
    def regret(self) -> float:
        """What a day cost more than the least."""
        return self.ran.cost - self.least


def certify(subject: Subject, history: History, settings: Settings) -> Certificate:
    """Return the certificate of a job's last whole days, ``backtest.days`` at most.

    Args:
        subject: the job with its load and models.
        history: what ran.
        settings: of the pipeline.

    Raises:
        HistoryError: there is no whole day.
        NotMeasuredError: what ran is known of too little of them.
        SpecError: the replica cannot be built.
    """
    days = min(settings.backtest.days, len(subject.rates_per_s) // DAY_BINS)
    if not days:
        raise HistoryError("there is no whole day of history to certify")
    before = len(subject.rates_per_s) - days * DAY_BINS
    stretches = [
        Stretch.of(replace(subject, models=shift_capacities(subject.models, z)), before, settings, history.failure_s)
        for z in (0.0, -INTERVAL_Z, INTERVAL_Z)
    ]
    ran, share = measure_ran(history, stretches[0], days)
    bound = _solve(stretches[0])
    expected, *ends = (one.least / days for one in (bound, *(_solve(at, bound) for at in stretches[1:])))
    best, least = _follow_bound(stretches[0], bound), (min(*ends, expected), max(*ends, expected))
    made = Certificate(days, share, ran, best, expected, *least, "")
    return replace(made, reason=explain_regret(made))


def _solve(stretch: Stretch, known: LeastCost | None = None) -> LeastCost:
    ages_s = None if known is None else known.ages_s
    return solve_least(stretch.workload, stretch.subject.seed(), stretch.conditions, ages_s)


def shift_capacities(models: JobModels, z: float) -> JobModels:
    """Return models whose operators process so many standard deviations more than expected."""
    if not z:
        return models
    curves = {
        name: replace(one, mean_per_s=np.maximum(one.mean_per_s + z * one.sd_per_s, 0.05 * one.mean_per_s))
        for name, one in models.capacity.items()
    }
    return replace(models, capacity=curves)


def measure_ran(history: History, stretch: Stretch, days: int) -> tuple[DayCost, float]:
    """Return what a day of what ran took, and of which share of the time that is known.

    Raises:
        NotMeasuredError: of too little.
    """
    first_s, prices = stretch.workload.start_s, stretch.conditions.prices
    if first_s < history.start_s:
        raise NotMeasuredError("what ran is not known from the first of the days on")
    day = history.measure_day(first_s, days)
    if day.share < LEAST_MEASURED:
        raise NotMeasuredError(f"what ran is known of {day.share:.0%} of the time")
    return DayCost.of(day.slot_hours, day.late_minutes, day.rescales, prices, stretch.subject.slots_max), day.share


def _follow_bound(stretch: Stretch, bound: LeastCost) -> DayCost:
    """Return what a day of the bound's own choices takes on the replica."""
    assert bound.schedule is not None
    conditions, slots_max = stretch.conditions, stretch.subject.slots_max
    follower = CandidatePolicy("bound", bound.schedule, asks_in_restarts=True)
    ledger = ReplayRun(stretch.workload, [follower], [stretch.subject.seed()], conditions).run().ledger
    took = DailyCosts.of(ledger, slice(0, 1), slice(None), conditions, slots_max)
    slot_hours, late_minutes, rescales = (
        float(one.mean()) for one in (took.slot_hours, took.late_minutes, took.rescales)
    )
    return DayCost.of(slot_hours, late_minutes, rescales, conditions.prices, slots_max)


def explain_regret(made: Certificate) -> str:
    """Return the largest part of what a job cost more than the bound's own choices, as a sentence for a person."""
    ran, best = made.ran, made.best
    if made.ratio_high < 1.0:
        return "it cost less than the least with any capacity in the interval: its models take it for slower than it is"
    if ran.cost < (1.0 + _LEAST_SHARE) * made.least:
        return ""
    parts = {
        f"{ran.slot_hours - best.slot_hours:.1f} more slot-hours a day": ran.of_slots - best.of_slots,
        f"{ran.late_minutes - best.late_minutes:.1f} more late minutes a day": ran.of_lateness - best.of_lateness,
        f"{ran.rescales - best.rescales:.1f} more rescales a day": ran.of_rescales - best.of_rescales,
    }
    name, most = max(parts.items(), key=lambda pair: pair[1])
    if most <= 0:
        return "the bound's own choices cost as much: what is left is between them and the bound"
    total = sum(max(part, 0.0) for part in parts.values())
    return f"{name} than the load needed: {most / total:.0%} of what it cost more"
