"""What the programme decides on: sizes of a job, its load, its prices, and what one step of it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from include.domain.slots import count_paid
from models.arrays import Floats, Ints
from models.programme.error_shapes import Weights, cumulate
from models.programme.horizon import LoadLevels
from models.programme.load_paths import STEP_S
from models.programme.window_tables import GRID, find_places, list_ages, run_steps

Costs = Mapping[int, tuple[Floats, Floats]]
"""Step -> (K, Z, A) of staying and of going, the price of a rescale not included."""
_SD_STEPS: Final = 5  # transients are told apart by e^(1/5)
_LEAST_SD: Final = 0.02
_DOWN_STEP_S: Final = 5.0  # so are downtimes, so that tables are found again
_CHANGE_AND_BACK: Final = 2.0


@dataclass(frozen=True, slots=True)
class RecoveryGoal:
    """After a failure a job has caught up within a time, with a probability.

    Attributes:
        within_s: the time, from the failure on.
        probability: of it.
    """

    within_s: float
    probability: float


@dataclass(frozen=True, slots=True)
class CostTerms:
    """Prices and stops of a job.

    Attributes:
        slot_price: of a slot for a minute.
        late_price: of a late minute.
        rescale_price: of a rescale, with the margin that a change has to promise.
        late_after_s: the job is late while its oldest record is older.
        rescale_s, restart_s: expected downtimes.
        lost_s: age of the checkpoint that a failure finds.
        failures_per_step: probability of a failure in a step.
        down_s: how long the job will still be down; 0 of one that runs.
        recovery: how soon it has to have caught up after a failure; None where nobody asks for it.
        wait_s: how long a rescale waits before it stops the job, which goes on at its size meanwhile.
        slots_wait_s: how much longer one waits for slots that it lacks, and pays for from the request on.
        taskmanager_slots: of a TaskManager; whole ones are paid, and a rise within them lacks none.
    """

    slot_price: float
    late_price: float
    rescale_price: float
    late_after_s: float
    rescale_s: float
    restart_s: float
    lost_s: float
    failures_per_step: float
    down_s: float = 0.0
    recovery: RecoveryGoal | None = None
    wait_s: float = 0.0
    slots_wait_s: float = 0.0
    taskmanager_slots: int = 1

    def count_paid(self, slots: Floats) -> Floats:
        """Return the slots of the TaskManagers that hold so many."""
        return count_paid(slots, self.taskmanager_slots)

    def find_wait_s(self, slots_from: float, slots_to: float) -> float:
        """Return how long a change of slots waits before it stops the job."""
        before, after = self.count_paid(np.array([slots_from, slots_to]))
        return self.wait_s + (self.slots_wait_s if after > before else 0.0)

    @property
    def at_once(self) -> CostTerms:
        """Return the terms of a step in which nothing is waited for."""
        return replace(self, wait_s=0.0, slots_wait_s=0.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that a job may have; the first is the running one.

    Attributes:
        slots: (K,) that each takes.
        log_capacity: (K, J) log of the load that each sustains in each step of the programme, records/s.
        sd: (K,) relative deviation of one step's load from its level, and of what is not known of the capacity.
        paid: (J,) what a slot costs in each step on top of its own price; None where slots are not short.
        outside: (J, K) what a size costs in each step in which schedules ask for another one; None without any.
    """

    slots: Floats
    log_capacity: Floats
    sd: Floats
    paid: Floats | None = None
    outside: Floats | None = None


@dataclass(frozen=True, slots=True)
class CostsToGo:
    """Expected costs over the horizon.

    Attributes:
        stay: of staying with the running size now.
        go: (K,) of going to each size now.
    """

    stay: float
    go: Floats


def _round_down(seconds: float) -> float:
    return float(round(seconds / _DOWN_STEP_S) * _DOWN_STEP_S)


def code_spreads(sizes: Sizes) -> tuple[tuple[float, ...], Ints]:
    """Return the transients that are told apart, and (K,) which of them each size has."""
    coded = np.rint(np.log(np.maximum(sizes.sd, _LEAST_SD)) * _SD_STEPS) / _SD_STEPS
    spreads, which = np.unique(coded, return_inverse=True)
    return tuple(np.exp(spreads).round(5).tolist()), which


@lru_cache(maxsize=256)
def tabulate(sds: tuple[float, ...], shape: Weights, terms: CostTerms, steps: int) -> Any:
    """Return what one step of the programme does to a job, (U * D, (A + 1) * 2A).

    A row per transient and load over capacity; in it, the weights of the ages at the end and the price of the late
    minutes, each by the age at the beginning, without a rescale and after one.

    Args:
        sds: relative deviations of single evaluations, U of them.
        shape: of these deviations.
        terms: of the job; a job that is down comes back in the step.
        steps: evaluations of the step.
    """
    chance = 0.0 if terms.down_s > 0 else terms.failures_per_step
    failure = (chance, _round_down(terms.restart_s), _round_down(terms.lost_s))
    most_late = round(_CHANGE_AND_BACK * terms.rescale_price / max(terms.late_price, 1e-9), 2)
    stops = (
        (_round_down(terms.down_s), failure),
        (_round_down(max(terms.down_s, terms.rescale_s)), (0.0, *failure[1:])),
    )
    rows = []
    for sd in sds:
        both = [run_steps(down_s, sd, shape, terms.late_after_s, fails, steps, most_late) for down_s, fails in stops]
        each = [np.concatenate([ends, terms.late_price * late[..., None]], axis=2) for late, ends in both]
        rows.append(np.concatenate(each, axis=1))
    table = np.concatenate(rows).astype(np.float32)
    return np.ascontiguousarray(table.swapaxes(1, 2)).reshape(len(table), -1)


@dataclass(frozen=True)
class Problem:
    """Sizes, load and prices of a job.

    Attributes:
        sizes: K of them, the running one first.
        levels: of the load.
        shape: of the transients.
        terms: of the job.
    """

    sizes: Sizes
    levels: LoadLevels
    shape: Weights
    terms: CostTerms

    @cached_property
    def ages(self) -> Floats:
        """(A,) of the grid."""
        return np.array(list_ages(self.terms.late_after_s))

    @cached_property
    def paid_slots(self) -> Floats:
        """(K,) of the TaskManagers that hold each size."""
        return self.terms.count_paid(self.sizes.slots)

    @cached_property
    def places(self) -> Ints:
        """(J, K, Z) of the load over the capacity of each size."""
        return find_places(self.levels.log_load[:, None, :] - self.sizes.log_capacity.T[:, :, None])

    @cached_property
    def expected(self) -> list[Ints]:
        """J arrays (K, Z or 1): places of the load that is expected in a step, by the level in the one before."""
        loads = [chances @ load for chances, load in zip(self.levels.chances, self.levels.log_load, strict=True)]
        places = find_places(np.concatenate(loads) - self.sizes.log_capacity.T.repeat([*map(len, loads)], axis=0).T)
        return np.split(places, np.cumsum([*map(len, loads)])[:-1], axis=1)

    @cached_property
    def _tables(self) -> tuple[list[Any], Ints]:
        """Return what each step does to a job, see :func:`tabulate`, and (J, K, Z) the row of each size and load."""
        (sds, which), first = code_spreads(self.sizes), self.terms.at_once
        later = replace(first, down_s=0.0)
        each = {steps: tabulate(sds, self.shape, later, steps) for steps in set(self.levels.steps)}
        tables = [tabulate(sds, self.shape, first, self.levels.steps[0]), *(each[one] for one in self.levels.steps[1:])]
        return tables, which[:, None] * len(GRID) + self.places

    def tabulate_step(self, step: int, size: slice | int = slice(None)) -> Any:
        """Return (K, Z, A + 1, 2A) what a step does to a job; of one size without the first."""
        tables, rows = self._tables
        count, rows = len(self.ages), rows[step, size]
        return tables[step].take(rows, axis=0, mode="clip").reshape(*rows.shape, count + 1, 2 * count)

    @cached_property
    def held(self) -> list[np.ndarray]:
        """J arrays (K, Z or 1, 1): what a size costs in a step, late minutes apart, by the load in the step before."""
        sizes, terms, minutes = self.sizes, self.terms, np.array(self.levels.steps) * STEP_S / 60
        slot_cost = (terms.slot_price * self.paid_slots).astype(np.float32)
        spent = slot_cost * minutes.astype(np.float32)[:, None]  # (J, K)
        if sizes.paid is not None:
            spent = spent + (sizes.paid[:, None] * self.paid_slots).astype(np.float32)
        if sizes.outside is not None:
            spent = spent + sizes.outside.astype(np.float32)
        each = list(spent[:, :, None, None])
        if terms.recovery is None:
            return each
        unlikely = _price_recovery(sizes, self.levels, self.shape, terms)
        return [one + charged for one, charged in zip(each, unlikely, strict=True)]


def _price_recovery(sizes: Sizes, levels: LoadLevels, shape: Weights, terms: CostTerms) -> list[np.ndarray]:
    """Return J arrays (K, Z, 1): what it costs that a failure in a step would not be caught up with in time.

    After a stop of D with records of B to read again, the age of the oldest one falls by C / L - 1 a second: it is gone
    within T, counted from the failure on, where C / L >= 1 + (D + B) / (T - D).  A minute in which that is less likely
    than asked for costs as much as a late one.  A goal that no size can meet costs alike at all of them.
    """
    assert terms.recovery is not None
    remaining_s = terms.recovery.within_s - terms.restart_s
    if remaining_s <= 0:
        return [np.zeros((len(sizes.slots), len(one), 1), np.float32) for one in levels.chances]
    needed = math.log1p((terms.restart_s + terms.lost_s) / remaining_s)
    grid, total = cumulate(shape)
    spread = np.maximum(sizes.sd, _LEAST_SD)[:, None]
    result = []
    for step, chances in enumerate(levels.chances):
        at = (sizes.log_capacity[:, step, None] - needed - levels.log_load[None, step]) / spread  # (K, Z)
        enough = np.interp(at, grid, total, left=0.0, right=1.0) @ chances.T
        minutes = levels.steps[step] * STEP_S / 60
        charged = terms.late_price * minutes * (enough < terms.recovery.probability)
        result.append(charged[..., None].astype(np.float32))
    return result
