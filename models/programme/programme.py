"""The programme: at each step a job stays or goes to another size, whatever its load and its backlog have become.

    stay_j(k, z, a) = E_z'|z [ slots(k) + late(k, z', a) + E V_{j+1}(k, z', a') ]
    go_j(k, z, a)   = the same after the stop of a rescale
    V_j = min( stay_j(k), min over k' of rescale + go_j(k') )

k is the size, z the standardised level of the load, a the age of the oldest record.  Finite horizon, solved backwards
(Bellman); at its end a backlog costs the time that it takes to work off.  One reward for all: slots, late minutes and
rescales in the planner's own prices.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from include.utc import MINUTE_S
from models.arrays import Floats, Ints
from models.programme.error_shapes import Weights, cumulate
from models.programme.horizon import LEVELS, Levels
from models.programme.load_paths import STEP_S
from models.programme.window_tables import GRID, WORK_OFF, find_places, list_ages, run_steps, weigh_age, weigh_ages

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
class Terms:
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
class Values:
    """Expected costs over the horizon.

    Attributes:
        stay: of staying with the running size now.
        go: (K,) of going to each size now.
    """

    stay: float
    go: Floats


def _round_down(seconds: float) -> float:
    return float(round(seconds / _DOWN_STEP_S) * _DOWN_STEP_S)


def _code_spreads(sizes: Sizes) -> tuple[tuple[float, ...], Ints]:
    """Return the transients that are told apart, and (K,) which of them each size has."""
    coded = np.rint(np.log(np.maximum(sizes.sd, _LEAST_SD)) * _SD_STEPS) / _SD_STEPS
    spreads, which = np.unique(coded, return_inverse=True)
    return tuple(np.exp(spreads).round(5).tolist()), which


@lru_cache(maxsize=256)
def _tabulate(sds: tuple[float, ...], shape: Weights, terms: Terms, steps: int) -> Any:
    """Return what one step of the programme does to a job, (U * D, 2A * (A + 1)).

    A row per transient and load over capacity; in it, for each age, without a rescale and after one: the weights of the
    ages at the end, and the price of the late minutes.

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
    return np.ascontiguousarray(table.reshape(len(table), -1))


def solve(sizes: Sizes, levels: Levels, shape: Weights, age_s: float, terms: Terms) -> Values:
    """Return what staying and going cost from now on.

    Args:
        sizes: K of them.
        levels: of the load.
        shape: of the transients.
        age_s: of the oldest record now.
        terms: of the job.
    """
    ((_, stay, go),) = deque(walk_back(sizes, levels, shape, terms), maxlen=1)
    ages = np.array(list_ages(terms.late_after_s))
    now = weigh_age(age_s, ages)
    log_ratio = levels.chances[0][0] @ levels.log_load[0] - sizes.log_capacity[0, 0]
    stopped = weigh_age(max(age_s + terms.wait_s * (1.0 - math.exp(-float(log_ratio))), 0.0), ages)
    return Values(float(stay[0, 0] @ now), np.asarray(go[:, 0] @ stopped + terms.rescale_price, float))


def walk_back(
    sizes: Sizes, levels: Levels, shape: Weights, terms: Terms
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each step of the programme, the last one first, with what staying and going cost from there on.

    Both are (K, Z, A) by size, by the level of the load in the step before and by age; of the first step Z is 1, since
    the load is known.  Going is without the price of the rescale.
    """
    ages = np.array(list_ages(terms.late_after_s))
    sds, which = _code_spreads(sizes)
    first = replace(terms, wait_s=0.0)
    runs = replace(first, down_s=0.0)
    # (D, A, A) weights of the ages at which a job is stopped, after the wait at its load over its capacity
    stopped = weigh_ages(np.clip(ages + terms.wait_s * (1.0 - np.exp(-GRID))[:, None], 0.0, ages[-1]), ages)
    stopped = stopped.astype(np.float32)
    places = find_places(levels.log_load[:, None, :] - sizes.log_capacity.T[:, :, None])  # (J, K, Z)
    minutes = np.array(levels.steps) * STEP_S / 60
    slot_cost = (terms.slot_price * sizes.slots).astype(np.float32)
    spent = slot_cost * minutes.astype(np.float32)[:, None]  # (J, K)
    if sizes.paid is not None:
        spent = spent + (sizes.paid[:, None] * sizes.slots).astype(np.float32)
    if sizes.outside is not None:
        spent = spent + sizes.outside.astype(np.float32)
    spent = spent[:, :, None, None]
    unlikely = None if terms.recovery is None else _price_recovery(sizes, levels, shape, terms)
    unserved = terms.late_price * WORK_OFF / 60 * np.maximum(ages - terms.late_after_s, 0.0)
    count = len(ages)
    value = np.ones((*places.shape[1:], count + 1, 1), np.float32)  # the last one takes the price of late minutes
    value[..., :count, 0] = unserved
    shaped = (*places.shape[1:], 2 * count, count + 1)
    for step in range(len(levels.steps) - 1, -1, -1):
        table = _tabulate(sds, shape, first if step == 0 else runs, levels.steps[step])
        rows = (which[:, None] * len(GRID) + places[step]).ravel()
        cost = np.matmul(table.take(rows, axis=0, mode="clip").reshape(shaped), value)[..., 0]  # (K, Z, 2A)
        both = np.matmul(levels.chances[step].astype(np.float32), cost) + spent[step]
        stay, go = both[..., :count], both[..., count:]
        if unlikely is not None:
            stay, go = stay + unlikely[step], go + unlikely[step]
        yield step, stay, go
        if step:
            change = go.min(axis=0) + np.float32(terms.rescale_price)  # (Z, A)
            if terms.wait_s:
                change = np.matmul(stopped[places[step - 1]], change[..., None])[..., 0]  # (K, Z, A)
            np.minimum(stay, change, out=value[..., :count, 0])


def age_after(age_s: float, stop_s: Floats, length_s: float, ratio: Floats) -> Floats:
    """Return (K,) the age of the backlog after a step under the expected load.

    Args:
        age_s: at its beginning.
        stop_s: (K,) during which a size is down.
        length_s: of the step.
        ratio: (K,) capacity over load.
    """
    return np.asarray(np.maximum(age_s + stop_s + (length_s - stop_s) * (1.0 - ratio), 0.0))


def expect_late_minutes(
    sizes: Sizes, levels: Levels, shape: Weights, age_s: float, terms: Terms, *, path: Sequence[int]
) -> Floats:
    """Return late minutes that are expected in each step of a path: those that the programme prices.

    The backlog is the one that the expected load leads to.  In a step the load is spread as far as it is not known one
    step before: whatever else it becomes until then, the programme would answer.

    Args:
        sizes: of the job, the running one first.
        levels: of the load.
        shape: of the transients.
        age_s: of the oldest record now.
        terms: of the job.
        path: the size in each step, as many steps as are asked for.
    """
    terms = replace(terms, wait_s=0.0, late_price=terms.late_price or 1.0)
    ages, (sds, which) = np.array(list_ages(terms.late_after_s)), _code_spreads(sizes)
    place, late_minutes = 0, []
    for step, after in enumerate(path):
        length_s, stop_s = levels.steps[step] * STEP_S, terms.rescale_s * (after != place)
        table = _tabulate(sds, shape, terms if step == 0 else replace(terms, down_s=0.0), levels.steps[step])
        rows = which[after] * len(GRID) + find_places(levels.log_load[step] - sizes.log_capacity[after, step])
        late = table[rows].reshape(len(rows), 2, len(ages), -1)[:, int(after != place), :, -1] @ weigh_age(age_s, ages)
        known = levels.chances[step][0 if step == 0 else LEVELS.index(0.0)]
        late_minutes.append(min(float(known @ late) / terms.late_price, length_s / MINUTE_S))
        ratio = np.exp(sizes.log_capacity[after, step] - known @ levels.log_load[step])
        age_s, place = float(age_after(age_s, np.array(stop_s), length_s, ratio)), after
    return np.array(late_minutes)


def _price_recovery(sizes: Sizes, levels: Levels, shape: Weights, terms: Terms) -> list[np.ndarray]:
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
