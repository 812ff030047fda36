"""The best configuration that never changes, found in hindsight: whole runs of the engine at every level of load."""

from __future__ import annotations

import numpy as np

from lab.replay.conditions import Conditions
from lab.replay.engine import Engine, EngineSetting
from lab.replay.random_draws import RandomDraws
from lab.replay.scores import WindowCosts, compute_score
from lab.replay.workload import Workload, find_limits, find_sufficient
from models.arrays import Ints

LEVELS = 24
SEED = 0


def list_constants(workload: Workload) -> Ints:
    """Return (n, O) configurations: the least for each of some levels up to the highest load, and the largest."""
    spec = workload.spec
    highest = workload.rates_per_s.max(axis=0)
    shares = np.linspace(1.0 / LEVELS, 1.0, LEVELS)
    fitting = find_sufficient(spec, shares[:, None] * highest, 1.0)
    return np.unique(np.vstack([fitting, find_limits(spec)]), axis=0).astype(np.int64)


def find_best_constant(workload: Workload, conditions: Conditions) -> Ints:
    """Return (O,) the configuration that would have cost least with the failures and noise of one seed.

    Args:
        workload: job and load, all of it known.
        conditions: of the run.
    """
    constants, cadence, prices = list_constants(workload), conditions.cadence, conditions.prices
    width = constants.shape[1]
    windows = len(workload.rates_per_s) // cadence.steps
    draws = [RandomDraws.from_seed(SEED, windows, width, cadence, conditions.disturbances)]
    setting = EngineSetting(workload, cadence, conditions.disturbances, draws, prices.lag_target_s)
    engine = Engine(setting, np.zeros(len(constants), np.int64), constants[-1])
    engine.rows.parallelism[:] = constants
    ledger = WindowCosts.empty(windows, len(constants))
    for window in range(windows):
        ledger.enter(window, engine.advance())
    costs = [
        compute_score(
            ledger,
            row,
            slice(0, windows),
            window_s=cadence.window_s,
            slots_max=workload.spec.slots_max,
            prices=prices,
        ).cost
        for row in range(len(constants))
    ]
    best: Ints = constants[int(np.argmin(costs))]
    return best
