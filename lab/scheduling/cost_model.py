"""Cost of a configuration in a bin and of a change to it, all in one unit.

    cost = w_res x slots / slots_max per minute  +  w_late per late minute  +  margin x w_rescale per rescale

The saving of a change is an estimate, and the largest of many; the next plan may undo the change.  So the estimate must
be ``rescale_margin`` times the cost of a rescale.

Late minutes have three causes: load above capacity, both uncertain; a failure, whose backlog takes longer to work off
with less headroom (Phoebe III-B); the rescale itself.

Lateness that no size can change is no reason for one: an operator that is short at its limit must not make all sizes
look alike, or the smallest would be taken and the other operators, which do have what they need, would fall short too.

| name | meaning | shape |
| --- | --- | --- |
| T, K | bins, candidates | |
| headroom | capacity / load of the tightest operator | (T, K) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from include.utc import DAY_S, MINUTE_S
from lab.scheduling.planner_settings import PlannerSettings
from lab.scheduling.quantiles import quantile_at_level
from models.arrays import Floats, Ints
from models.bundle.job_models import RecoveryModel
from models.capacity.lower_tail import sd_towards
from models.scheduling.demand import MEDIAN, SCORES, Demand
from models.scheduling.expectation import Outlook
from models.scheduling.need import CapacityBounds
from models.scheduling.slot_counts import count_slots_of_rows
from models.scheduling.slot_problem import CostTables

# Without headroom a backlog is never worked off; the next plan, or the reactive controller, ends it after about this.
LONGEST_LATE_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Time of planning and state of the job.

    Attributes:
        as_of_s: epoch seconds, in the first bin.
        slots_max: most slots of the job.
        lag_s: age of the oldest record that waits, s.
        groups: (O,) slot-sharing group of each operator; none: all are in one.
    """

    as_of_s: int
    slots_max: int
    lag_s: float
    groups: tuple[str, ...] = ()


def compute_costs(outlook: Outlook, configurations: Ints, now: CurrentState, options: PlannerSettings) -> CostTables:
    """Return the costs of every candidate in every bin.

    Args:
        outlook: demand, capacity and recovery.
        configurations: (K, O) candidates.
        now: the time and state of planning.
        options: the planner's settings.
    """
    costs = options.costs
    demand = outlook.demand
    ends = demand.start_s + demand.bin_s * np.arange(1, demand.bins + 1)
    minutes = np.minimum(ends - now.as_of_s, demand.bin_s) / MINUTE_S
    overload = avoidable_overload(outlook, configurations, costs.overload_tolerance)
    overloaded = _overload_cost(overload, options) * minutes[:, None]
    slots = count_slots_of_rows(configurations, now.groups)
    headroom_ratio = headroom(outlook, configurations, costs.recovery_quantile)
    recovery = outlook.recovery
    failures = costs.failures_per_day * minutes * MINUTE_S / DAY_S
    rescale = late_time_s(recovery.downtime_rescale_s, 0.0, headroom_ratio, costs.late_after_s) / MINUTE_S
    late = np.zeros_like(headroom_ratio)
    if now.lag_s > costs.late_after_s:
        late[0] += work_off_time_s(now.lag_s - costs.late_after_s, headroom_ratio[0]) / MINUTE_S
    return CostTables(
        slots=slots,
        bin_cost=costs.late_weight * late
        + overloaded
        + costs.failure_margin * failures[:, None] * _failure_cost(recovery, headroom_ratio, slots, now, options),
        switch=costs.rescale_margin * costs.rescale_weight + costs.late_weight * rescale,
        minutes=minutes,
        slot_price=costs.resource_weight / now.slots_max,
    )


def _overload_cost(probability: Floats, options: PlannerSettings) -> Floats:
    """Return (T, K) the cost per minute of a probability of overload, (T, K).

    An unexpected overload is ended by the reactive controller: the job is late for a share of the hour, is rescaled up
    and, by the next plan, down again, and has more slots than it needs meanwhile.  An expected one, P near 1, returns
    with every plan: the share that the controller does not end grows with P^2, so that no plan relies on it.
    """
    costs = options.costs
    if not options.reactive.rescales_for_catch_up:
        return costs.late_weight * probability
    share = costs.overload_late_share
    late = share + (1.0 - share) * probability**2
    ended = 2.0 * costs.rescale_weight / 60.0 + costs.resource_weight * costs.overload_slots_share
    return probability * (costs.late_weight * late + ended)


def _failure_cost(
    recovery: RecoveryModel, headroom_ratio: Floats, slots: Ints, now: CurrentState, options: PlannerSettings
) -> Floats:
    """Return (T, K) the cost of a failure: its backlog is worked off as it is, or in the widest candidate if cheaper.

    The reactive controller runs every ``apply_every_s``, half of which passes on average; it scales the job up, and
    down again when there is no backlog any more.
    """
    costs = options.costs
    down_s, replay_s, rescale_s = (
        recovery.downtime_restart_s,
        recovery.checkpoint_interval_s,
        recovery.downtime_rescale_s,
    )
    stay = costs.late_weight * late_time_s(down_s, replay_s, headroom_ratio, costs.late_after_s) / MINUTE_S
    if not options.reactive.rescales_for_catch_up:
        return stay
    wait_s = options.timing.apply_every_s / 2
    late_down_s = max(down_s - max(costs.late_after_s - replay_s, 0.0), 0.0)
    age_s = max(replay_s + down_s - costs.late_after_s, 0.0)
    remaining_s = np.maximum(age_s - np.maximum(headroom_ratio - 1.0, 0.0) * wait_s, 0.0) + rescale_s
    widest = int(slots.argmax())
    off_s = work_off_time_s(remaining_s, headroom_ratio[:, widest, None])
    late_s = late_down_s + wait_s + rescale_s + off_s
    wider = (slots[widest] - slots)[None, :] * costs.resource_weight / now.slots_max
    extra_cost = wider * (rescale_s + off_s + wait_s) / MINUTE_S + 2 * costs.rescale_weight
    return np.asarray(np.minimum(stay, costs.late_weight * late_s / MINUTE_S + extra_cost))


def avoidable_overload(outlook: Outlook, configurations: Ints, tolerance: float = 0.0) -> Floats:
    """Return (T, K) the probability of overload that another size of the job would avoid.

    Of an operator with probability P, and P* at its limit, P - P* is avoidable.  What is not, P*, counts where the
    candidate processes less than the limit would, as far as the widest operators let records pass: in full from a
    shortfall of 5% on.  Where the limit suffices, P* = 0, it is P.

    Args:
        outlook: demand and capacity.
        configurations: (K, O) candidates.
        tolerance: share by which load may exceed capacity: a slight excess takes longer than a bin to make a job late,
            and bins above the median are followed by others below it.
    """
    worst = np.zeros((outlook.demand.bins, len(configurations)))
    passing = _passing_multiple(outlook)
    for row, bounds in limiting_operators(outlook):
        last = len(bounds.mean_per_s) - 1
        used, back = np.unique(bounds.index_of(configurations[:, row]), return_inverse=True)
        result = overload_of_operator(outlook.demand, row, bounds, np.append(used, last), tolerance)
        rates = outlook.demand.rates_per_s[MEDIAN, row]
        arriving = np.where(rates > 0, passing, 1.0) * rates
        useful = np.maximum(np.minimum(arriving, bounds.mean_per_s[last]), _LEAST_CAPACITY_PER_S)  # (T,)
        lost = 1.0 - np.clip(bounds.mean_per_s[None, used] / useful[:, None], 0.0, 1.0)
        avoidable = np.maximum(result[:, :-1] - result[:, -1:], 0.0)
        avoidable += result[:, -1:] * np.minimum(lost / _FULL_SHORTFALL, 1.0)
        worst = np.maximum(worst, avoidable[:, back])
    return worst


def _passing_multiple(outlook: Outlook) -> Floats:
    """Return (T,) the multiple of the load that the operators with the highest limit process there."""
    limiting = limiting_operators(outlook)
    widest = max((len(bounds.mean_per_s) for _, bounds in limiting), default=0)
    multiples = [
        _ratio(bounds.mean_per_s[-1:], outlook.demand.rates_per_s[MEDIAN, row])[:, 0]
        for row, bounds in limiting
        if len(bounds.mean_per_s) == widest
    ]
    return np.asarray(np.min(multiples, axis=0)) if multiples else np.full(outlook.demand.bins, np.inf)


def limiting_operators(outlook: Outlook) -> list[tuple[int, CapacityBounds]]:
    """Return row and capacity of the operators whose demand and capacity are known."""
    known, demand = outlook.demand.is_known, outlook.demand
    return [
        (row, outlook.bounds[name])
        for row, name in enumerate(demand.operators)
        if name in outlook.bounds and known[row]
    ]


def overload_of_operator(demand: Demand, row: int, bounds: CapacityBounds, used: Ints, tolerance: float) -> Floats:
    """Return (T, U) the probability that an operator is overloaded, with each of ``used``, (U,) indices of capacities.

    The load's quantile function is linear in the normal score between its levels, and the capacity is normal; of the
    piece in which the expected capacity lies, P = Phi(-distance / root of both variances).
    """
    mean, sd = bounds.mean_per_s[used], bounds.sd_per_s[used]
    rates = (1.0 - tolerance) * demand.rates_per_s[:, row, :, None]  # (L, T, 1)
    slopes = np.diff(rates, axis=0) / np.diff(SCORES)[:, None, None]
    piece = np.clip((mean >= rates[1:-1]).sum(axis=0), 0, len(slopes) - 1)  # (T, U)
    slope = np.take_along_axis(slopes, piece[None], axis=0)[0]
    at = np.take_along_axis(rates, piece[None], axis=0)[0]
    distance = mean - at + SCORES[piece] * slope
    sd_total = np.sqrt(slope**2 + sd_towards(mean, sd, at) ** 2) + _MIN_SD_SHARE * np.maximum(mean, 1.0)
    return np.asarray(ndtr(-distance / sd_total))


_LEAST_CAPACITY_PER_S: Final = 1e-9
_FULL_SHORTFALL: Final = 0.05  # share of the records: a backlog that grows so fast is late within the hour
_MIN_SD_SHARE: Final = 1e-9


def headroom(outlook: Outlook, configurations: Ints, level: float) -> Floats:
    """Return (T, K) capacity over the load's quantile, of the tightest operator that could have headroom.

    Infinite where nothing limits.  An operator that has none even at its limit is left out where another could have
    some: it would make all sizes alike.
    """
    demand = outlook.demand
    load = demand.rates_per_s[MEDIAN] if level == 0.5 else quantile_at_level(demand.rates_per_s, level)
    least = np.full((demand.bins, len(configurations)), np.inf)
    least_of_all = least.copy()
    for row, bounds in limiting_operators(outlook):
        ratio = _ratio(bounds.mean_per_s[bounds.index_of(configurations[:, row])], load[row])
        could = _ratio(bounds.mean_per_s[-1:], load[row]) > 1.0
        least_of_all = np.fmin(least_of_all, ratio)
        least = np.fmin(least, np.where(could, ratio, np.inf))
    return np.where(np.isinf(least), least_of_all, least)


def _ratio(capacity_per_s: Floats, load_per_s: Floats) -> Floats:
    """Return (T, K) capacity, (K,), over load, (T,); infinite without load."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = capacity_per_s[None, :] / load_per_s[:, None]
    return np.where(load_per_s[:, None] > 0, ratio, np.inf)


def late_time_s(downtime_s: float, replay_s: float, headroom_ratio: Floats, late_after: float) -> Floats:
    """Return how long a job is late after a downtime, (...) s.

    The oldest record is as old as the checkpoint when the job stops, and ages with the clock until it runs again; from
    then on its age falls by headroom - 1 per second.  Phoebe's R (III-B) counts until nothing waits; a job is late
    only while the age exceeds ``late_after``.

    >>> late_time_s(45.0, 30.0, np.array([1.5]), 60.0).tolist()
    [45.0]
    >>> late_time_s(120.0, 30.0, np.array([1.5]), 60.0).tolist()
    [270.0]
    """
    downtime_late_s = downtime_s - max(late_after - replay_s, 0.0)
    beyond = max(replay_s + downtime_s - late_after, 0.0)
    return np.asarray(np.minimum(max(downtime_late_s, 0.0) + work_off_time_s(beyond, headroom_ratio), LONGEST_LATE_S))


def work_off_time_s(age_s: npt.ArrayLike, headroom_ratio: Floats) -> Floats:
    """Return how long it takes until the oldest record is younger by ``age_s``, (...) s, at most LONGEST_LATE_S.

    >>> work_off_time_s(120.0, np.array([1.0, 1.5, 3.0])).tolist()
    [3600.0, 240.0, 60.0]
    """
    age = np.asarray(age_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        took = np.minimum(age / np.maximum(headroom_ratio - 1.0, 0.0), LONGEST_LATE_S)
    return np.asarray(np.where(age > 0, took, 0.0))
