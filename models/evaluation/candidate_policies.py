"""Contenders by name: every policy of the registry, and what they are measured against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from models.evaluation.ablations import ABLATIONS
from models.evaluation.clairvoyant import clairvoyant_script
from models.evaluation.drivers import Driver, PlannedDriver, ReactiveDriver, ScriptedDriver
from models.evaluation.planner_driver import PlannerDriver
from models.evaluation.replay_run import CandidatePolicy, Conditions
from models.evaluation.workload import Workload, limits, sufficient
from models.policies.registry import POLICIES, policy
from models.simulation.spec import IntArray

# Policies whose schedules look ahead, so that the hourly plan is theirs; all others react at every tick.
PLANNED = frozenset({"need_vector", "phoebe", "twres"})
# Reactive policies that look at what the nightly training has learnt.
READS_MODELS = frozenset({"mdp", "rl_plus", "rl", "rl_decentralised", "dragster_saddle", "dragster_gradient"})
# Reactive policies that solve a decision problem anew at each decision, which may take them a second; they are made for
# the cadence of plans and make up at once for the actions that they could not take since the last one.
WITH_PLANS = frozenset({"mdp", "rl_plus", "rl", "rl_decentralised"})
# Drivers that implement the protocol themselves: name -> what makes one.
OWN_DRIVERS: dict[str, Callable[[], Driver[Any]]] = {"planner": PlannerDriver}
SCRIPTS = ("static_max", "static_mean", "clairvoyant")


def names() -> tuple[str, ...]:
    """Return all names; "static", which keeps what it finds, is left out for the two static configurations."""
    return (*OWN_DRIVERS, *(name for name in POLICIES if name not in {"static", *OWN_DRIVERS}), *SCRIPTS)


def check_names(chosen: Sequence[str]) -> None:
    """Refuse names that no contender has.

    Raises:
        ValueError: with the names that can be chosen.
    """
    unknown = sorted(set(chosen) - {*names(), *ABLATIONS, "static"})
    if unknown:
        raise ValueError(f"no policy is called {unknown}; choose from {', '.join((*names(), *ABLATIONS))}")


def candidate_policies(chosen: Sequence[str], workload: Workload, conditions: Conditions) -> list[CandidatePolicy]:
    """Return contenders by name.

    Raises:
        ValueError: a name is not known.
    """
    check_names(chosen)
    made = [(name, _driver(name, workload, conditions)) for name in chosen]
    return [CandidatePolicy(name, driver, isinstance(driver, PlannerDriver)) for name, driver in made]


def _driver(name: str, workload: Workload, conditions: Conditions) -> Driver[Any]:
    options = conditions.planner
    if name in ABLATIONS:
        return ABLATIONS[name](conditions.fleet)
    if name in OWN_DRIVERS:
        return OWN_DRIVERS[name]()
    if name in SCRIPTS:
        scripts: dict[str, Callable[[], tuple[IntArray, IntArray]]] = {
            "static_max": lambda: _always(workload, limits(workload.spec)),
            "static_mean": lambda: _always(
                workload,
                sufficient(workload.spec, workload.rates_per_s.mean(axis=0), options.target_utilisation),
            ),
            "clairvoyant": lambda: clairvoyant_script(
                workload, workload.means_per_s(conditions.cadence.window_s), options, conditions.around
            ),
        }
        times_s, parallelism = scripts[name]()
        return ScriptedDriver(times_s, workload.spec.graph().names, parallelism)
    if name in PLANNED:
        return PlannedDriver(policy(name))
    return ReactiveDriver(policy(name), name in READS_MODELS, name in WITH_PLANS)


def _always(workload: Workload, parallelism: IntArray) -> tuple[IntArray, IntArray]:
    return np.array([workload.start_s], np.int64), parallelism[None, :]
