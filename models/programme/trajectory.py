"""The nominal trajectory: what the programme decides over a day while the load is as its law expects.

One backward pass over the day gives the decision of every step for every level of the load and every age of the
backlog.  Followed at the expected level it is the plan; around it, it tells how far load and backlog may be off before
another decision is the cheaper one: the band of a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.horizon import LEVELS, Levels, list_firsts
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import STEP_S
from models.programme.path_costs import EXPECTED, Costs, PathCosts, charge
from models.programme.programme import Sizes, Terms, Values, age_after, expect_late_minutes, walk_back
from models.programme.window_tables import list_ages, weigh_age
from models.scheduling.step_band import StepBand

DAY_STEPS: Final = (1,) * 12 + (2,) * 12 + (4,) * 63
"""(J,) evaluations in each step of the day: fine for the three hours in which a newer plan will come."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of the trajectory.

    Attributes:
        first: evaluations from now until it.
        step: of the programme.
        place_from, place_to: among the sizes.
        age_s: of the backlog then.
        values: of staying, and of going to each size, with the price of a rescale.
        band: in which it stays.
    """

    first: int
    step: int
    place_from: int
    place_to: int
    age_s: float
    values: Values
    band: StepBand


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The decisions of a day.

    Attributes:
        turns: the changes, by time.
        values: of the first decision.
        ages_s: (J,) of the backlog at the beginning of each step.
        path: (J,) the size in each step.
    """

    turns: tuple[Turn, ...]
    values: Values
    ages_s: tuple[float, ...]
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Day:
    """The programme of a day, solved.

    Attributes:
        sizes: of the job, (K, J) capacities; the running one first.
        levels: of the day's steps.
        outlook: of the day, from which they were made.
        terms: of the job.
        age_s: of the oldest record now.
        costs: of staying and going at each step.
    """

    sizes: Sizes
    levels: Levels
    outlook: LoadOutlook
    terms: Terms
    age_s: float
    costs: Costs

    @classmethod
    def solve(cls, sizes: Sizes, levels: Levels, outlook: LoadOutlook, terms: Terms, age_s: float) -> Day:
        """Solve it."""
        costs = {step: (stay, go) for step, stay, go in walk_back(sizes, levels, outlook.shape, terms)}
        return cls(sizes, levels, outlook, terms, age_s, costs)

    def price_path(self) -> PathCosts:
        """Return what the trajectory costs step by step."""
        ages = np.array(list_ages(self.terms.late_after_s))
        return PathCosts.of(self.costs, ages, _follow(self, self.costs, 0.0).ages_s, self.terms.rescale_price)

    def expect_late(self, path: Sequence[int]) -> Floats:
        """Return the late minutes that are expected in each step of a path."""
        return expect_late_minutes(self.sizes, self.levels, self.outlook.shape, self.age_s, self.terms, path=path)

    def follow(self, tolerance: float, paid: Floats | None = None, *, avoids_lateness: bool = False) -> Trajectory:
        """Return what the programme decides while the load is as expected.

        Args:
            tolerance: a step stays in its band while no other decision is cheaper by more than this.
            paid: (J,) what is paid for a slot in each step on top of its own price; None where slots are not short.
            avoids_lateness: up to a rescale's price is paid for not being late under the expected load; not in a
                cluster with a budget, whose allocation has seen the cheapest path.
        """
        free = _follow(self, self.costs, tolerance, avoids_lateness=avoids_lateness)
        if paid is None or not paid.any():
            return free
        ages = np.array(list_ages(self.terms.late_after_s))
        path = PathCosts.of(self.costs, ages, free.ages_s, self.terms.rescale_price)
        raised = path.raise_by(paid[:, None] * self.sizes.slots[None, :])
        return _follow(self, charge(self.costs, raised), tolerance, free.ages_s)


def _follow(
    day: Day,
    costs: Costs,
    tolerance: float,
    passed_s: Sequence[float] | None = None,
    *,
    avoids_lateness: bool = False,
) -> Trajectory:
    """Return the decisions along the expected load, at the ages that they lead to or at those that are given."""
    sizes, levels, outlook, terms = day.sizes, day.levels, day.outlook, day.terms
    ages, firsts = np.array(list_ages(terms.late_after_s)), list_firsts(levels.steps)
    every, place, age, turns, begin = np.arange(len(sizes.slots)), 0, day.age_s, list[Turn](), None
    ages_s, path = list[float](), list[int]()
    ratios = np.exp(sizes.log_capacity - levels.log_load[:, EXPECTED])  # (K, J)
    for step, count in enumerate(levels.steps):
        if passed_s is not None:
            age = passed_s[step]
        ages_s.append(age)
        known = 0 if step == 0 else EXPECTED
        weights = weigh_age(age, ages)
        stay, go = costs[step]
        values = Values(float(stay[place, known] @ weights), np.asarray(go[:, known] @ weights + terms.rescale_price))
        begin = begin or values
        is_change = every != place
        each = np.where(is_change, values.go, values.stay)
        stops_s = terms.rescale_s * is_change
        ends_s = age_after(age, stops_s, count * STEP_S, ratios[:, step])
        most = terms.rescale_price if avoids_lateness and age <= terms.late_after_s else 0.0
        best = _select(each, place, ends_s > terms.late_after_s, most)
        if best != place:
            at = max(step, 1)  # at the first step the load is known: the band is that of the next
            near = _Decision(*costs[at], place, best, terms.rescale_price)
            within = max(tolerance, float(each[best] - each.min()))
            spread = near.find_levels(ages, age, within)
            band = StepBand(*_find_loads(outlook, int(firsts[at]), spread), *near.find_ages(ages, age, within))
            turns.append(Turn(int(firsts[step]), step, place, best, age, values, band))
            place = best
        path.append(best)
        age = float(ends_s[best])
    assert begin is not None
    return Trajectory(tuple(turns), begin, tuple(ages_s), tuple(path))


def _select(costs: Floats, place: int, is_late: np.ndarray, most: float) -> int:
    """Return the cheapest size; where that is late at the end of the step, the cheapest that is not.

    A long step counts on being looked at again within it, and a load that is as likely above a capacity as below it may
    be waited for.  On the expected load itself that is late, and has to be worked off by a rescale more, which is what
    avoiding it may cost.

    Args:
        costs: (K,) of staying at ``place``, and of going to each other size.
        place: that runs; it wins where all cost the same.
        is_late: (K,) whether the expected load leaves each late.
        most: that a size which is not late may cost more than the cheapest.
    """
    worth = costs + 1e-9
    worth[place] = costs[place]
    best = int(worth.argmin())
    if not (most > 0 and is_late[best]):
        return best
    order = np.argsort(worth, kind="stable")
    near = order[costs[order] < costs[order[0]] + most]
    return int(next((one for one in near if not is_late[one]), order[0]))


@dataclass(frozen=True, slots=True)
class _Decision:
    """A change at a step, and what every other decision costs there: (K, Z, A) of staying and going."""

    stay: Floats
    go: Floats
    place_from: int
    place_to: int
    rescale_price: float

    def _find_lead(self) -> Floats:
        """Return (Z, A) by how much the change is cheaper than any other decision."""
        others = np.delete(self.go, [self.place_from, self.place_to], axis=0) + self.rescale_price
        rival = np.minimum(self.stay[self.place_from], others.min(axis=0, initial=np.inf))
        return np.asarray(rival - (self.go[self.place_to] + self.rescale_price))

    def find_levels(self, ages: Floats, age_s: float, tolerance: float) -> tuple[float, float]:
        """Return the standardised levels of the load between which the change stays the cheapest."""
        lead = self._find_lead() @ weigh_age(age_s, ages)
        low, high = _find_ends(np.array(LEVELS), lead + tolerance, EXPECTED)
        return max(low, LEVELS[0]), min(high, LEVELS[-1])  # beyond the levels nothing was compared

    def find_ages(self, ages: Floats, age_s: float, tolerance: float) -> tuple[float, float]:
        """Return the ages of the backlog between which it does."""
        near = int(np.abs(ages - age_s).argmin())
        low, high = _find_ends(ages, self._find_lead()[EXPECTED] + tolerance, near)
        return max(low, 0.0), high


def _find_ends(nodes: Floats, lead: Floats, begin: int) -> tuple[float, float]:
    """Return between which nodes a lead stays positive around one of them; infinite where it does to the last."""
    ends = []
    for way in (-1, 1):
        at = begin
        while 0 <= at + way < len(nodes) and lead[at + way] >= 0:
            at += way
        if not 0 <= at + way < len(nodes):
            ends.append(way * np.inf)
            continue
        share = lead[at] / (lead[at] - lead[at + way]) if lead[at] > 0 else 0.0
        ends.append(float(nodes[at] + share * (nodes[at + way] - nodes[at])))
    return ends[0], ends[1]


def _find_loads(outlook: LoadOutlook, first: int, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the load expected next at standardised levels of the step before a decision, records/s."""
    stays = 1.0 - outlook.pull * (1.0 - outlook.keep)
    spread = stays * float(outlook.sd[first - 1])
    low, high = (max(math.exp(float(outlook.mean[first]) + spread * end) - outlook.offset, 0.0) for end in ends)
    return low, high
