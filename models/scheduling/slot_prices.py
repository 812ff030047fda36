"""A budget of slots for a whole fleet: prices per bin that make the jobs' own optima fit together (dual ascent).

The budget couples the jobs only through the sum of their slots, so each job is solved by itself under a price of slots,
pi(t) >= 0; prices rise where too many slots are demanded and fall where some are free (Dragster's projection on a
budget does the same for one job's operators).  Similar jobs all give up slots at the same price; so in the end a
share of them pays the prices that are too high, the others those that are too low.

Deviation: the ascent brackets each bin's price and halves the bracket instead of steps that shrink with the root of the
round: demand falls in jumps where jobs are alike, and fixed steps swing across them.  What remains over the budget is
not taken from single jobs one by one; the share of jobs that pay the high prices grows until everything fits.  So each
round is one pass over the fleet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats

BRACKETS: Final = 24  # doublings until every bin fits
HALVINGS: Final = 7  # of the bracket of each bin's price, and again of the share of jobs
_TOP: Final = 2.0**20  # of a slot's own price: a job that keeps its slots at this price cannot do without them
_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class SlotPrices:
    """What the jobs pay for slots on top of their own price, (T,) per slot and minute.

    Attributes:
        low: of most jobs.
        high: of jobs whose hash, 0..1, is below ``share``.
    """

    low: Floats
    high: Floats
    share: float

    @classmethod
    def free(cls) -> SlotPrices:
        """Return the prices of a fleet without a budget."""
        return cls(np.zeros(1), np.zeros(1), 0.0)

    @property
    def has_budget(self) -> bool:
        """Whether they are those of a cluster with a budget, short or not."""
        return len(self.low) > 1

    def of(self, hashes: Floats) -> Floats:
        """Return (J, T) prices for jobs with these hashes, (J,)."""
        return np.where(hashes[:, None] < self.share, self.high, self.low)

    def of_job(self, seed: int, bins: int) -> Floats:
        """Return (bins,) prices for one job; the last bin's are repeated where the prices end.

        >>> SlotPrices(np.array([0.0, 0.2]), np.array([0.1, 0.3]), 0.5).of_job(seed=1, bins=4).tolist()
        [0.1, 0.3, 0.3, 0.3]
        """
        prices = self.of(np.array([job_hash(seed)]))[0]
        return np.concatenate([prices, np.repeat(prices[-1], max(bins - len(prices), 0))])[:bins]

    def weigh(self, weight: float) -> SlotPrices:
        """Return the prices for a job that pays so many times as much as others: see :func:`weight_of`."""
        return SlotPrices(self.low * weight, self.high * weight, self.share)


def weight_of(priority: int) -> float:
    """Return what a job of a priority pays for a slot that is short: half as much for each step above others.

    >>> weight_of(0), weight_of(2), weight_of(-1), weight_of(1000) == weight_of(20)
    (1.0, 0.25, 2.0, True)
    """
    return float(2.0 ** -min(max(priority, -_MOST_PRIORITY), _MOST_PRIORITY))


_MOST_PRIORITY: Final = 20  # beyond it a slot is as good as free, or beyond any price


def job_hash(seed: int) -> float:
    """Return the hash of a job, 0..1, from the seed of its situation.

    >>> round(job_hash(12_345), 4)
    0.2378
    """
    return seed % _HASHES / _HASHES


_HASHES: Final = 9973  # a prime: consecutive seeds differ


@dataclass(frozen=True, slots=True)
class SlotDemand:
    """Slots that the fleet demands at given prices.

    Attributes:
        slots: (T,) of all jobs together.
        cost: of all jobs together, without what they pay for prices.
    """

    slots: Floats
    cost: float


@dataclass(frozen=True, slots=True)
class Allocation:
    """Prices and the demand at them.

    Attributes:
        prices: of the slots.
        demand: at these prices.
        fits: whether no bin is over the budget.
        rounds: passes over the fleet until now.
    """

    prices: SlotPrices
    demand: SlotDemand
    fits: bool
    rounds: int


class _Search:
    def __init__(self, demand_at: Callable[[SlotPrices], SlotDemand], budget: Floats) -> None:
        self.demand_at, self.budget, self.rounds = demand_at, budget, 0
        self.cheapest: Allocation | None = None  # of those that fit

    def attempt(self, low: Floats, high: Floats, share: float) -> Allocation:
        prices = SlotPrices(low, high, share)
        self.rounds += 1
        demand = self.demand_at(prices)
        result = Allocation(prices, demand, bool((demand.slots <= self.budget + _SLACK).all()), self.rounds)
        if result.fits and (self.cheapest is None or demand.cost < self.cheapest.demand.cost):
            self.cheapest = result
        return result


def allocate(demand_at: Callable[[SlotPrices], SlotDemand], budget: Floats, unit: float) -> Allocation:
    """Return the cheapest prices found at which the fleet stays within its budget, (T,) slots.

    When there is none, since the jobs cannot give way any more, the last one is returned with ``fits`` False. The
    demand at given prices is one pass over the fleet; ``unit``, a slot's own price per minute, is the scale of steps.
    """
    search = _Search(demand_at, budget)
    low, high = np.zeros(len(budget)), np.zeros(len(budget))
    result = search.attempt(low, low, 0.0)
    for _ in range(BRACKETS):
        over = result.demand.slots > budget + _SLACK
        if not over.any() or high.max() > _TOP * unit:
            break
        low = np.where(over, high, low)
        high = np.where(over, 2.0 * high + unit, high)
        result = search.attempt(high, high, 0.0)
    if search.cheapest is None or result.rounds == 1:
        return result
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        result = search.attempt(middle, middle, 0.0)
        over = result.demand.slots > budget + _SLACK
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    _mix_prices(search, low, high)
    return search.cheapest


def _mix_prices(search: _Search, low: Floats, high: Floats) -> None:
    """Look for the smallest share of jobs at the high prices that makes everything fit."""
    fits, too_few = 1.0, 0.0
    for _ in range(HALVINGS):
        share = (fits + too_few) / 2
        if search.attempt(low, high, share).fits:
            fits = share
        else:
            too_few = share
