"""Candidate policies by name: every policy of the registry, and what they are measured against."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from include.policy_catalogue import REFERENCES, Decides, catalogue, entry_of
from models.arrays import Ints
from models.evaluation.ablations import ABLATIONS
from models.evaluation.clairvoyant import solve_clairvoyant
from models.evaluation.conditions import Conditions
from models.evaluation.drivers import Driver, PlannedDriver, ReactiveDriver, ScheduleDriver
from models.evaluation.planner_driver import PlannerDriver
from models.evaluation.rivals.best_constant import find_best_constant
from models.evaluation.rivals.formed_driver import FormedDriver, WithHeadroom
from models.evaluation.rivals.rival_catalogue import BEST_CONSTANT, CONTROLLER_ALONE, RIVALS, build_rival, list_rivals
from models.evaluation.workload import Workload, find_limits, find_sufficient
from models.policies.registry import policy

# Drivers that implement the protocol themselves, by name.
OWN_DRIVERS: dict[str, Callable[..., Driver[Any]]] = {"planner": PlannerDriver}


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """A driver under a name.

    Attributes:
        name: of the candidate.
        driver: decides for it.
        asks_in_restarts: its requests reach a job that restarts after a failure, as those of the reactive controller
            do; the controller refuses other steps for a job that does not run.
    """

    name: str
    driver: Driver[Any]
    asks_in_restarts: bool = False


def list_names() -> tuple[str, ...]:
    """Return all names; "static", which keeps what it finds, is left out for the two static configurations."""
    policies = (name for name in catalogue() if name not in {"static", *OWN_DRIVERS})
    return (*OWN_DRIVERS, *policies, *list_rivals(), *REFERENCES)


def list_deciding(when: Decides) -> list[str]:
    """Return the names of the policies that decide so, of those that have no driver of their own."""
    return sorted(name for name, entry in catalogue().items() if entry.decides is when and name not in OWN_DRIVERS)


def check_names(chosen: Sequence[str], further: Collection[str] = ()) -> None:
    """Refuse names that no candidate policy has.

    Args:
        chosen: as written.
        further: names of forms.

    Raises:
        ValueError: with the names that can be chosen.
    """
    known = (*list_names(), *ABLATIONS, *further)
    unknown = sorted(set(chosen) - {*known, "static"})
    if unknown:
        raise ValueError(f"no policy is called {unknown}; choose from {', '.join(known)}")


def build_candidates(chosen: Sequence[str], workload: Workload, conditions: Conditions) -> list[CandidatePolicy]:
    """Return candidate policies by name.

    Raises:
        ValueError: a name is not known.
    """
    check_names(chosen, conditions.forms)
    return [_build_candidate(name, workload, conditions) for name in chosen]


def _build_candidate(name: str, workload: Workload, conditions: Conditions) -> CandidatePolicy:
    form = conditions.forms.get(name)
    if form is None:
        driver = _build_driver(name, conditions.parameters.get(name, {}), 0.0, workload, conditions)
        return CandidatePolicy(name, driver, isinstance(driver, PlannerDriver))
    inner = _build_driver(form.base, form.parameters, form.headroom, workload, conditions)
    return CandidatePolicy(name, FormedDriver(inner, form), isinstance(inner, PlannerDriver))


def _build_driver(
    name: str, parameters: Mapping[str, object], headroom: float, workload: Workload, conditions: Conditions
) -> Driver[Any]:
    if name in ABLATIONS:
        return ABLATIONS[name](conditions.fleet)
    if name in OWN_DRIVERS:
        return OWN_DRIVERS[name](changed=parameters)
    if name in {CONTROLLER_ALONE, *RIVALS}:
        return build_rival(name, parameters)
    if name in {*REFERENCES, BEST_CONSTANT}:
        times_s, parallelism = _compute_schedule(name, workload, conditions)
        return ScheduleDriver(times_s, workload.spec.graph().names, parallelism)
    entry, made = entry_of(name), policy(name, parameters or None)
    made = WithHeadroom(made, headroom) if headroom else made
    if entry.decides is Decides.AHEAD:
        return PlannedDriver(made)
    return ReactiveDriver(made, entry.reads_models, entry.decides is Decides.WITH_PLANS)


def _compute_schedule(name: str, workload: Workload, conditions: Conditions) -> tuple[Ints, Ints]:
    """Return (n,) epoch seconds and the (n, O) parallelism from each of them on."""
    spec, options = workload.spec, conditions.planner
    if name == "clairvoyant":
        means_per_s = workload.compute_means(conditions.cadence.window_s)
        return solve_clairvoyant(workload, means_per_s, options, conditions.disturbances)
    if name == "static_max":
        parallelism = find_limits(spec)
    elif name == BEST_CONSTANT:
        parallelism = find_best_constant(workload, conditions)
    else:
        parallelism = find_sufficient(spec, workload.rates_per_s.mean(axis=0), options.capacity.target_utilisation)
    return np.array([workload.start_s], np.int64), parallelism[None, :]
