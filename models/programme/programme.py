"""The programme: at each step a job stays or goes to another size, whatever its load and its backlog have become.

    stay_j(k, z, a) = E_z'|z [ slots(k) + late(k, z', a) + E V_{j+1}(k, z', a') ]
    go_j(k, z, a)   = the same after the stop of a rescale
    V_j = min( stay_j(k), min over k' of rescale + go_j(k') )

k is the size, z the standardised level of the load, a the age of the oldest record.  Finite horizon, solved backwards
(Bellman); at its end a backlog costs the time that it takes to work off.  One reward for all: slots, late minutes and
rescales in the planner's own prices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from models.arrays import Floats
from models.programme.error_shapes import Weights
from models.programme.horizon import Levels
from models.programme.load_paths import STEP_S
from models.programme.window_tables import WORK_OFF, find_places, list_ages, run_steps, weigh_ages

_SD_STEPS: Final = 5  # transients are told apart by e^(1/5)
_LEAST_SD: Final = 0.02
_DOWN_STEP_S: Final = 5.0  # so are downtimes, so that tables are found again
_CHANGE_AND_BACK: Final = 2.0


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


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that a job may have; the first is the running one.

    Attributes:
        slots: (K,) that each takes.
        log_capacity: (K, J) log of the load that each sustains in each step of the programme, records/s.
        sd: (K,) relative deviation of one step's load from its level, and of what is not known of the capacity.
    """

    slots: Floats
    log_capacity: Floats
    sd: Floats


@dataclass(frozen=True, slots=True)
class Values:
    """Expected costs over the horizon.

    Attributes:
        stay: of staying with the running size now.
        go: (K,) of going to each size now.
    """

    stay: float
    go: Floats


@dataclass(frozen=True, slots=True)
class _Transients:
    """Relative deviations of single steps, U of them, and their shape."""

    sds: list[float]
    shape: Weights


def _round_down(seconds: float) -> float:
    return float(round(seconds / _DOWN_STEP_S) * _DOWN_STEP_S)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Late minutes (U, D, A) and ages at the end (U, D, A, A), of U transients."""

    late: Floats
    ends: Floats


def _stack(down_s: float, transients: _Transients, terms: Terms, steps: int, *, fails: bool = False) -> _Tables:
    chance = terms.failures_per_step if fails else 0.0
    failure = (chance, _round_down(terms.restart_s), _round_down(terms.lost_s))
    most_late = round(_CHANGE_AND_BACK * terms.rescale_price / max(terms.late_price, 1e-9), 2)
    further = (transients.shape, terms.late_after_s, failure, steps, most_late)
    every = [run_steps(_round_down(down_s), sd, *further) for sd in transients.sds]
    return _Tables(np.stack([one[0] for one in every]), np.stack([one[1] for one in every]))


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
    now = weigh_ages(np.array(min(age_s, ages[-1])), ages)
    return Values(float(stay[0, 0] @ now), np.asarray(go[:, 0] @ now + terms.rescale_price, float))


def walk_back(
    sizes: Sizes, levels: Levels, shape: Weights, terms: Terms
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each step of the programme, the last one first, with what staying and going cost from there on.

    Both are (K, Z, A) by size, by the level of the load in the step before and by age; of the first step Z is 1, since
    the load is known.  Going is without the price of the rescale.
    """
    ages = np.array(list_ages(terms.late_after_s))
    coded = np.rint(np.log(np.maximum(sizes.sd, _LEAST_SD)) * _SD_STEPS) / _SD_STEPS
    spreads, which = np.unique(coded, return_inverse=True)
    transients = _Transients([float(value) for value in np.exp(spreads).round(5)], shape)
    stays = {steps: _stack(0.0, transients, terms, steps, fails=True) for steps in set(levels.steps)}
    goes = {steps: _stack(terms.rescale_s, transients, terms, steps) for steps in set(levels.steps)}
    places = find_places(levels.log_load[:, None, :] - sizes.log_capacity.T[:, :, None])  # (J, K, Z)
    minutes = np.array(levels.steps) * STEP_S / 60
    slot_cost = (terms.slot_price * sizes.slots).astype(np.float32)
    unserved = terms.late_price * WORK_OFF / 60 * np.maximum(ages - terms.late_after_s, 0.0)
    value = np.broadcast_to(unserved.astype(np.float32), (len(sizes.slots), levels.log_load.shape[1], len(ages)))
    late_price, row = np.float32(terms.late_price), which[:, None]
    for step in range(len(levels.steps) - 1, -1, -1):
        stay_table, go_table = stays[levels.steps[step]], goes[levels.steps[step]]
        if step == 0 and terms.down_s > 0:
            stay_table = _stack(terms.down_s, transients, terms, 1)
            go_table = _stack(max(terms.down_s, terms.rescale_s), transients, terms, 1)
        spent = (slot_cost * np.float32(minutes[step]))[:, None, None]
        chance = levels.chances[step].astype(np.float32)
        stay, go = (
            np.matmul(chance, _run(table, row, places[step], value, late_price)) + spent
            for table in (stay_table, go_table)
        )
        yield step, stay, go
        value = np.minimum(stay, go.min(axis=0)[None] + np.float32(terms.rescale_price))


def _run(table: _Tables, row: Any, place: Any, value: Any, late_price: np.float32) -> Floats:
    """Return (K, Z, A) what a step costs at each level, with the value of what follows."""
    late, ends = table.late[row, place], table.ends[row, place]
    follow = np.einsum("kzab,kzb->kza", ends, value)
    return np.asarray(late_price * late + follow)
