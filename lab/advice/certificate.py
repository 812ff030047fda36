"""A job's certificate: what its days cost beside the least that any policy could have paid for the load that came.

What ran is taken as it was measured.  The least is the lower bound of the replay, on the job's replica and with the
failures that happened; capacities of the replica are known within an interval, and so is the least.  What is more than
it, the regret, has three parts: slots, late minutes, rescales; the largest is the reason.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.settings import Settings
from lab.advice.history import History
from lab.backtest.comparison import BIN_S, DAY_BINS, HistoryError, Subject, build_conditions
from lab.replay.bound.solve_bound import LeastCost, solve_least
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import Conditions, Prices
from lab.replay.rate_series import interpolate_steps
from lab.replay.replay_run import ReplayRun
from lab.replay.scores import Score, compute_score
from lab.replay.workload import Workload
from lab.simulation.simulated_replica import build_replica
from models.arrays import Floats
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
    span = list_days(subject, settings)
    conditions = build_conditions(subject, settings)
    measured, share = measure_ran(history, span, conditions.prices, subject.slots_max)
    failures_s = tuple(float(at_s) - span.start_s for at_s in history.failure_s if at_s >= span.start_s)
    least = find_least(subject, span, settings, failures_s)
    made = Certificate(span.days, share, measured, least.best, least.expected, least.low, least.high, "")
    return replace(made, reason=explain_regret(made))


@dataclass(frozen=True, slots=True)
class Days:
    """The last whole days of a history: epoch seconds of their beginning, and how many."""

    start_s: int
    days: int


def list_days(subject: Subject, settings: Settings) -> Days:
    """Return the days that are certified.

    Raises:
        HistoryError: there is no whole day.
    """
    days = min(settings.backtest.days, len(subject.rates_per_s) // DAY_BINS)
    if not days:
        raise HistoryError("there is no whole day of history to certify")
    return Days(subject.start_s + (len(subject.rates_per_s) - days * DAY_BINS) * BIN_S, days)


@dataclass(frozen=True, slots=True)
class Least:
    """The least of a day: with capacities as expected and at the ends of their interval, and how it is come by."""

    expected: float
    low: float
    high: float
    best: DayCost


def find_least(subject: Subject, span: Days, settings: Settings, failures_s: tuple[float, ...]) -> Least:
    """Return the least that a day could have cost.

    Args:
        subject: the job.
        span: the days.
        settings: of the pipeline.
        failures_s: that happened, seconds since the beginning of the days.

    Raises:
        SpecError: the replica cannot be built.
    """
    conditions, days = build_conditions(subject, settings), span.days
    conditions = replace(conditions, disturbances=replace(conditions.disturbances, failure_at_s=failures_s))
    load = subject.rates_per_s[-days * DAY_BINS :]
    rates = interpolate_steps(load, BIN_S, conditions.cadence.step_s)
    seed = zlib.crc32(f"{subject.cluster}/{subject.job}".encode())

    def build_workload(z: float) -> Workload:
        models = shift_capacities(subject.models, z)
        spec = build_replica(subject.job, subject.graph, models, subject.slots_max, settings.planner)
        return Workload(spec, span.start_s, conditions.cadence.step_s, rates)

    workload = build_workload(0.0)
    bound = solve_least(workload, seed, conditions)
    ends = [
        solve_least(build_workload(z), seed, conditions, bound.ages_s).least / days for z in (-INTERVAL_Z, INTERVAL_Z)
    ]
    best = _follow_bound(workload, bound, seed, conditions)
    of_best = DayCost.of(
        best.slot_hours / days, best.late_minutes_per_day, best.rescales_per_day, conditions.prices, subject.slots_max
    )
    expected = bound.least / days
    return Least(expected, min(*ends, expected), max(*ends, expected), of_best)


def shift_capacities(models: JobModels, z: float) -> JobModels:
    """Return models whose operators process so many standard deviations more than expected."""
    if not z:
        return models
    curves = {
        name: replace(one, mean_per_s=np.maximum(one.mean_per_s + z * one.sd_per_s, 0.05 * one.mean_per_s))
        for name, one in models.capacity.items()
    }
    return replace(models, capacity=curves)


def measure_ran(history: History, span: Days, prices: Prices, slots_max: int) -> tuple[DayCost, float]:
    """Return what a day of what ran took, and of which share of the time that is known.

    Raises:
        NotMeasuredError: of too little.
    """
    first = round((span.start_s - history.start_s) / BIN_S)
    if first < 0:
        raise NotMeasuredError("what ran is not known from the first of the days on")
    bins = slice(first, first + span.days * DAY_BINS)
    known, slots, late_s = history.measured[bins], history.slots[bins], history.late_s[bins]
    share = float(known.mean()) if len(known) else 0.0
    if share < LEAST_MEASURED:
        raise NotMeasuredError(f"what ran is known of {share:.0%} of the time")
    measured_days = float(known.sum()) / DAY_BINS

    def per_day(values: Floats, scale: float) -> float:
        return float(values[known].sum()) * scale / measured_days

    rescales = float(history.count_by_day(history.rescale_s, span.start_s, span.days).mean())
    made = DayCost.of(per_day(slots, BIN_S / 3600.0), per_day(late_s, 1 / 60.0), rescales, prices, slots_max)
    return made, share


def _follow_bound(workload: Workload, bound: LeastCost, seed: int, conditions: Conditions) -> Score:
    """Return what the bound's own choices take on the replica."""
    assert bound.schedule is not None
    run = ReplayRun(workload, [CandidatePolicy("bound", bound.schedule, asks_in_restarts=True)], [seed], conditions)
    ledger = run.run().ledger
    span = slice(0, len(ledger.slots))
    window_s, slots_max = conditions.cadence.window_s, workload.spec.slots_max
    return compute_score(ledger, 0, span, window_s=window_s, slots_max=slots_max, prices=conditions.prices)


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
