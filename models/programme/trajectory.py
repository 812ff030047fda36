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
from models.programme.expected_path import age_after, expect_path
from models.programme.horizon import EXPECTED, LEVELS, LoadLevels, list_firsts
from models.programme.load_outlook import LoadOutlook
from models.programme.load_paths import STEP_S
from models.programme.path_costs import PathCosts, charge
from models.programme.problem import Costs, CostsToGo, CostTerms, Problem, Sizes
from models.programme.programme import Solution, solve_programme
from models.programme.waits import count_waiting_steps, price_changes
from models.programme.window_tables import weigh_age
from models.scheduling.step_band import StepBand

DAY_STEPS: Final = (1,) * 12 + (2,) * 12 + (4,) * 63
"""(J,) evaluations in each step of the day: fine for the three hours in which a newer plan will come."""


@dataclass(frozen=True, slots=True)
class TrajectoryChange:
    """A change of the trajectory.

    Attributes:
        first: evaluations from now until it is asked for.
        step: of the programme.
        wait_s: from then until the job stops for it.
        place_from, place_to: among the sizes.
        age_s: of the backlog then.
        values: of staying, and of going to each size, with the price of a rescale.
        band: in which it stays.
    """

    first: int
    step: int
    wait_s: float
    place_from: int
    place_to: int
    age_s: float
    values: CostsToGo
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

    turns: tuple[TrajectoryChange, ...]
    values: CostsToGo
    ages_s: tuple[float, ...]
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SolvedDay(Solution):
    """The programme of a day, solved.

    Attributes:
        outlook: of the day's load, from which it was made.
    """

    outlook: LoadOutlook

    @classmethod
    def solve(cls, sizes: Sizes, levels: LoadLevels, outlook: LoadOutlook, terms: CostTerms, age_s: float) -> SolvedDay:
        """Solve it."""
        solved = solve_programme(sizes, levels, outlook.shape, age_s, terms)
        return cls(solved.problem, age_s, solved.costs, outlook)

    @property
    def terms(self) -> CostTerms:
        """Of the job."""
        return self.problem.terms

    def price_path(self) -> PathCosts:
        """Return what the trajectory costs step by step."""
        passed_s = _follow(self, self.costs, 0.0).ages_s
        return PathCosts.of(self.costs, self.problem.ages, passed_s, self.terms.rescale_price)

    def expect_late(self, path: Sequence[int]) -> Floats:
        """Return the late minutes that are expected in each step of a path."""
        return expect_path(self.problem, self.age_s, len(path), lambda step, *_: path[step])[0]

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
        path = PathCosts.of(self.costs, self.problem.ages, free.ages_s, self.terms.rescale_price)
        raised = path.raise_by(paid[:, None] * self.problem.paid_slots[None, :])
        return _follow(self, charge(self.costs, raised), tolerance, free.ages_s)


def _follow(
    day: SolvedDay,
    costs: Costs,
    tolerance: float,
    passed_s: Sequence[float] | None = None,
    *,
    avoids_lateness: bool = False,
) -> Trajectory:
    """Return the decisions along the expected load, at the ages that they lead to or at those that are given."""
    problem, outlook, sizes, terms = day.problem, day.outlook, day.problem.sizes, day.problem.terms
    levels, ages, slots = problem.levels, problem.ages, sizes.slots.tolist()
    firsts, every, place, age, turns, begin = list_firsts(levels.steps), np.arange(len(slots)), 0, day.age_s, [], None
    changes_at, after = 0, 0  # the step from which on the size that was decided for last runs, and its place
    ages_s, path = list[float](), list[int]()
    lengths_s = np.array(levels.steps, float) * STEP_S
    ratios = np.exp(sizes.log_capacity - levels.log_load[:, EXPECTED])  # (K, J)

    def run(age_s: float, size: int, steps: range) -> float:
        for one in steps:
            age_s = float(age_after(age_s, np.zeros(1), lengths_s[one], ratios[size, [one]])[0])
        return age_s

    for step in range(len(lengths_s)):
        if passed_s is not None:
            age = passed_s[step]
        ages_s.append(age)
        if step >= changes_at:
            stay = costs[step][0][place, 0 if step == 0 else EXPECTED] @ weigh_age(age, ages)
            start = _begin(problem, step, age)
            going = price_changes(problem, costs, step=step, place=place, begin=start)[0] + terms.rescale_price
            values = CostsToGo(float(stay), going)
            begin = begin or values
            each = np.where(every != place, values.go, values.stay)
            last = step + count_waiting_steps(terms.wait_s + terms.slots_wait_s, levels.steps, step)[0]
            later_s = age if last == step else run(age, place, range(step, last))
            ends_s = age_after(later_s, terms.rescale_s * (every != place), lengths_s[last], ratios[:, last])
            most = terms.rescale_price if avoids_lateness and age <= terms.late_after_s else 0.0
            after = _select(each, place, ends_s > terms.late_after_s, most)
            if after != place:
                wait_s = terms.find_wait_s(slots[place], slots[after])
                changes_at = step + count_waiting_steps(wait_s, levels.steps, step)[0]
                at = max(step, 1)  # at the first step the load is known: the band is that of the next
                near = _Decision.of(problem, costs, at, place, after)
                within = max(tolerance, float(each[after] - each.min()))
                loads = _find_loads(outlook, int(firsts[at]), near.find_levels(ages, age, within))
                band = StepBand(*loads, *near.find_ages(ages, age, within))
                turns.append(TrajectoryChange(int(firsts[step]), step, wait_s, place, after, age, values, band))
        runs = after if step >= changes_at else place
        stop_s = np.array([terms.rescale_s * (runs != place)])
        age, place = float(age_after(age, stop_s, lengths_s[step], ratios[[runs], step])[0]), runs
        path.append(place)
    assert begin is not None
    return Trajectory(tuple(turns), begin, tuple(ages_s), tuple(path))


def _begin(problem: Problem, step: int, age_s: float) -> Floats:
    """Return (1, Z, A) the expected load and an age at the beginning of a step."""
    levels = 1 if step == 0 else len(LEVELS)
    at = np.zeros((1, levels, len(problem.ages)))
    at[0, 0 if step == 0 else EXPECTED] = weigh_age(age_s, problem.ages)
    return at


def _select(costs: Floats, place: int, is_late: np.ndarray, most: float) -> int:
    """Return the cheapest size; where that is late at the end of the step, the cheapest that is not.

    A long step counts on being looked at again within it, and a load that is as likely above a capacity as below it may
    be waited for.  On the expected load itself that is late, and has to be worked off by a rescale more, which is what
    avoiding it may cost.  Costs, (K,), are of staying at ``place``, which wins where all cost the same, and of going to
    each other size; one that is not late may cost ``most`` more than the cheapest.
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

    @classmethod
    def of(cls, problem: Problem, costs: Costs, step: int, place_from: int, place_to: int) -> _Decision:
        """Return it at a step that is not the first, where each level and age may be that of the step before."""
        levels, ages = len(LEVELS), len(problem.ages)
        begin = np.eye(levels * ages).reshape(-1, levels, ages)
        going = price_changes(problem, costs, step=step, place=place_from, begin=begin)
        going = going.T.reshape(-1, levels, ages)
        return cls(costs[step][0], going, place_from, place_to, problem.terms.rescale_price)

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
