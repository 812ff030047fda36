"""Contenders by name: every policy of the registry, and what they are measured against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from include.policy_catalogue import REFERENCES, Decides, catalogue, entry_of
from models.evaluation.ablations import ABLATIONS
from models.evaluation.clairvoyant import clairvoyant_script
from models.evaluation.drivers import Driver, PlannedDriver, ReactiveDriver, ScriptedDriver
from models.evaluation.planner_driver import PlannerDriver
from models.evaluation.replay_run import CandidatePolicy, Conditions
from models.evaluation.workload import Workload, limits, sufficient
from models.policies.registry import policy
from models.simulation.spec import IntArray

# Drivers that implement the protocol themselves: name -> what makes one.
OWN_DRIVERS: dict[str, Callable[[], Driver[Any]]] = {"planner": PlannerDriver}


def names() -> tuple[str, ...]:
    """Return all names; "static", which keeps what it finds, is left out for the two static configurations."""
    return (*OWN_DRIVERS, *(name for name in catalogue() if name not in {"static", *OWN_DRIVERS}), *REFERENCES)


def deciding(when: Decides) -> list[str]:
    """Return the names of the policies that decide so, of those that have no driver of their own."""
    return sorted(name for name, entry in catalogue().items() if entry.decides is when and name not in OWN_DRIVERS)


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
    if name in REFERENCES:
        scripts: dict[str, Callable[[], tuple[IntArray, IntArray]]] = {
            "static_max": lambda: _always(workload, limits(workload.spec)),
            "static_mean": lambda: _always(
                workload,
                sufficient(workload.spec, workload.rates_per_s.mean(axis=0), options.capacity.target_utilisation),
            ),
            "clairvoyant": lambda: clairvoyant_script(
                workload, workload.means_per_s(conditions.cadence.window_s), options, conditions.around
            ),
        }
        times_s, parallelism = scripts[name]()
        return ScriptedDriver(times_s, workload.spec.graph().names, parallelism)
    entry, made = entry_of(name), policy(name, conditions.parameters.get(name))
    if entry.decides is Decides.AHEAD:
        return PlannedDriver(made)
    return ReactiveDriver(made, entry.reads_models, entry.decides is Decides.WITH_PLANS)


def _always(workload: Workload, parallelism: IntArray) -> tuple[IntArray, IntArray]:
    return np.array([workload.start_s], np.int64), parallelism[None, :]
