"""What models that were trained before the appraised days said of them, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.advice.appraisal import RAN, Replayed
from lab.advice.history import History
from lab.backtest.daily_costs import weigh
from lab.backtest.subject import BIN_S, DAY_BINS, HOUR_BINS, Subject
from models.arrays import Floats, Ints

INSIDE_Z = 1.2816  # of an interval of 80%
AHEAD_BINS = 6 * HOUR_BINS  # of a forecast: what plans rest on most
Q50, Q90 = 1, 2  # places in models.scheduling.demand.LEVELS


@dataclass(frozen=True, slots=True)
class Measured:
    """The capacity that was measured at one parallelism of one operator.

    Attributes:
        operator, parallelism: which.
        mean_per_s, windows: mean of so many windows.
    """

    operator: str
    parallelism: int
    mean_per_s: float
    windows: int


@dataclass(frozen=True, slots=True)
class CostCheck:
    """What a day of what ran costs: on the replica, from the models of before, and as it was measured.

    Attributes:
        cost, cost_came: slots, late minutes and rescales in slot-hours.
        slot_hours, slot_hours_came: of what ran; equal but for the time in which a job was down.
        late_minutes, late_minutes_came: of what ran.
        measured_share: of the time, on which these compare.
    """

    cost: float
    cost_came: float
    slot_hours: float
    slot_hours_came: float
    late_minutes: float
    late_minutes_came: float
    measured_share: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predictions beside what came; NaN where nothing can be compared.

    Attributes:
        costs: of what ran.
        capacity_error: mean of |predicted - measured| / measured over operators and parallelisms.
        capacity_inside: share of them inside the 80% interval; capacity_points: how many.
        load_error: mean |q50 - load| / mean load over the next six hours, of every hour's forecast.
        load_below_q90: share of the time in which the load stayed below the forecast's q90; 0.9 is right.
        downtime_s, downtime_came_s, rescales: of a rescale, mean of so many.
    """

    costs: CostCheck
    capacity_error: float
    capacity_inside: float
    capacity_points: int
    load_error: float
    load_below_q90: float
    downtime_s: float
    downtime_came_s: float
    rescales: int


def calibrate(subject: Subject, history: History, result: Replayed, measured: Sequence[Measured]) -> Calibration:
    """Compare a job's models, its forecasts and its replica with what was measured."""
    error, inside, points = compare_capacity(subject, measured)
    load_error, below = compare_load(subject, result)
    actual_downtimes_s = history.downtimes_s
    return Calibration(
        compare_costs(history, result, subject.slots_max),
        capacity_error=error,
        capacity_inside=inside,
        capacity_points=points,
        load_error=load_error,
        load_below_q90=below,
        downtime_s=subject.models.recovery.downtime_rescale_s,
        downtime_came_s=float(actual_downtimes_s.mean()) if len(actual_downtimes_s) else float("nan"),
        rescales=len(actual_downtimes_s),
    )


def compare_costs(history: History, result: Replayed, slots_max: int) -> CostCheck:
    """Compare what ran on the replica with what was measured of it.

    Only bins that were measured count, on both sides.
    """
    days, bins, run = result.spans.days, result.spans.whole_days, result.run
    actual, known = history.measure_day(result.first_s, days), history.measured[history.find_bins(result.first_s, days)]
    measured_days, rows = float(known.sum()) / DAY_BINS or float("nan"), run.rows[RAN]

    def per_day(values: Floats | Ints) -> float:
        return float(np.asarray(values[bins, rows], float)[known].sum(axis=0).mean()) / measured_days

    slots, late = per_day(run.ledger.slots) * BIN_S / 3600.0, per_day(run.ledger.late_s) / 60.0
    # A request that the replica refused, since it was down, is made at the next window.
    rescales = float(run.ledger.rescales[bins, rows].sum(axis=0).mean()) / days
    prices = run.state.conditions.prices
    cost = weigh(slots, late, rescales, prices, slots_max)
    actual_cost = weigh(actual.slot_hours, actual.late_minutes, actual.rescales, prices, slots_max)
    return CostCheck(cost, actual_cost, slots, actual.slot_hours, late, actual.late_minutes, actual.share)


def compare_capacity(subject: Subject, measured: Sequence[Measured]) -> tuple[float, float, int]:
    """Return the mean error, the share inside the 80% interval, and how many capacities were compared."""
    errors, inside = [], []
    for one in measured:
        curve = subject.models.capacity.get(one.operator)
        if curve is None or one.parallelism > len(curve.mean_per_s) or one.mean_per_s <= 0:
            continue
        mean, sd = curve.mean_per_s[one.parallelism - 1], curve.sd_per_s[one.parallelism - 1]
        noise = np.nan_to_num(curve.noise_share) * mean / np.sqrt(one.windows)
        errors.append(abs(mean - one.mean_per_s) / one.mean_per_s)
        inside.append(abs(mean - one.mean_per_s) <= INSIDE_Z * np.hypot(sd, noise))
    if not errors:
        return float("nan"), float("nan"), 0
    return float(np.mean(errors)), float(np.mean(inside)), len(errors)


def compare_load(subject: Subject, result: Replayed) -> tuple[float, float]:
    """Return the error of the forecasts' median and how often the load stayed below their q90."""
    state = result.run.state
    arrivals = state.arrivals_per_s
    errors, below = [], []
    for hour in range(24 * result.spans.days):
        at_s = result.first_s + 3600 * hour
        forecast = state.find_forecast(at_s)
        begin = (at_s - state.start_s) // BIN_S
        received = arrivals[begin : begin + AHEAD_BINS]
        if forecast is None or not len(received):
            continue
        for place, name in enumerate(subject.graph.sources):
            levels = forecast.quantiles[name][:, : len(received)]
            actual = received[: levels.shape[1], place]
            errors.append(np.abs(levels[Q50] - actual))
            below.append(actual <= levels[Q90])
    if not errors:
        return float("nan"), float("nan")
    mean = max(float(arrivals.mean()), 1e-9)
    return float(np.concatenate(errors).mean()) / mean, float(np.concatenate(below).mean())
