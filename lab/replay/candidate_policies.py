"""Candidate policies by name: every policy of the registry, and what they are measured against."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from include.policy_catalogue import REFERENCES, Decides, catalogue
from lab.replay.ablations import ABLATIONS, PLANNER
from lab.replay.clairvoyant import solve_clairvoyant
from lab.replay.conditions import Conditions
from lab.replay.drivers import PolicyDriver, ScheduleDriver
from lab.replay.hosted_driver import HostedDriver
from lab.replay.programme_forms import FORMS
from lab.replay.workload import Workload, find_limits, find_sufficient
from models.arrays import Ints
from models.policies.protocol import Policy
from models.policies.registry import policy

_PLANNERS = (PLANNER, "controller_alone")
"""Of which no parameters but settings are changed."""


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """A driver under a name.

    Attributes:
        name: of the candidate.
        driver: decides for it.
        asks_in_restarts: its requests reach a job that restarts after a failure, as those of a policy that replans
            do; the controller refuses other steps for a job that does not run.
    """

    name: str
    driver: PolicyDriver[Any]
    asks_in_restarts: bool = False


def list_names() -> tuple[str, ...]:
    """Return all names but those of the planner's other forms.

    "static", which keeps what it finds, is left out for the two static configurations.
    """
    policies = (name for name in catalogue() if name not in {"static", *_PLANNERS})
    return (PLANNER, *policies, *REFERENCES)


def list_deciding(when: Decides) -> list[str]:
    """Return the names of the policies that decide so, but for the planner."""
    return sorted(name for name, entry in catalogue().items() if entry.decides is when and name not in _PLANNERS)


def check_names(chosen: Sequence[str], further: Collection[str] = ()) -> None:
    """Refuse names that no candidate policy has.

    Args:
        chosen: as written.
        further: names that can be chosen as well.

    Raises:
        ValueError: with the names that can be chosen.
    """
    known = (*list_names(), *ABLATIONS, *FORMS, *further)
    unknown = sorted(set(chosen) - {*known, *_PLANNERS, "static"})
    if unknown:
        raise ValueError(f"no policy is called {unknown}; choose from {', '.join(known)}")


def build_candidates(chosen: Sequence[str], workload: Workload, conditions: Conditions) -> list[CandidatePolicy]:
    """Return candidate policies by name.

    Raises:
        ValueError: a name is not known.
    """
    check_names(chosen)
    return [_build_candidate(name, workload, conditions) for name in chosen]


def _build_candidate(name: str, workload: Workload, conditions: Conditions) -> CandidatePolicy:
    driver = build_driver(name, conditions.parameters.get(name, {}), workload, conditions)
    return CandidatePolicy(name, driver, asks_in_restarts(driver))


def asks_in_restarts(driver: PolicyDriver[Any]) -> bool:
    """Return whether a driver's requests reach a job that restarts after a failure."""
    return isinstance(driver, HostedDriver) and driver.hosted.replans


def build_driver(
    name: str,
    parameters: Mapping[str, object],
    workload: Workload,
    conditions: Conditions,
    change: Callable[[Policy[Any]], Policy[Any]] | None = None,
) -> PolicyDriver[Any]:
    """Return the driver of a candidate.

    Args:
        name: of the candidate; it is known.
        parameters: of the policy; those that are missing keep their defaults. A name with a dot is one of the settings
            of planning, as ``costs.late_weight``.
        workload: of the run.
        conditions: of the run.
        change: what replaces a policy of the registry by another; the planner is left as it is.
    """
    if name in ABLATIONS:
        return ABLATIONS[name](conditions.fleet)
    if name in FORMS:
        return FORMS[name]
    if name in _PLANNERS:
        return HostedDriver.of(name, policy(name), parameters)
    if name in REFERENCES:
        times_s, parallelism = _compute_schedule(name, workload, conditions)
        ahead_s = conditions.cadence.round_to_ticks(conditions.disturbances.mean_wait_s)
        return ScheduleDriver(times_s, workload.spec.graph().names, parallelism, ahead_s)
    settings = {key: value for key, value in parameters.items() if "." in key}
    made = policy(name, {key: value for key, value in parameters.items() if key not in settings} or None)
    return HostedDriver.of(name, change(made) if change else made, settings)


def _compute_schedule(name: str, workload: Workload, conditions: Conditions) -> tuple[Ints, Ints]:
    """Return (n,) epoch seconds and the (n, O) parallelism from each of them on."""
    spec, options = workload.spec, conditions.planner
    if name == "clairvoyant":
        means_per_s = workload.compute_means(conditions.cadence.window_s)
        return solve_clairvoyant(workload, means_per_s, options, conditions.disturbances)
    if name == "static_max":
        parallelism = find_limits(spec)
    else:
        parallelism = find_sufficient(spec, workload.rates_per_s.mean(axis=0), options.capacity.target_utilisation)
    return np.array([workload.start_s], np.int64), parallelism[None, :]
