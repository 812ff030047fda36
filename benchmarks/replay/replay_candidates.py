"""Candidates of the replay by name: what a job can be driven by, and beside it rivals and forms of candidates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.replay.rivals.best_constant import find_best_constant
from benchmarks.replay.rivals.formed_driver import FormedDriver, WithHeadroom
from benchmarks.replay.rivals.rival_catalogue import BEST_CONSTANT, build_rival, list_rivals
from benchmarks.replay.rivals.rival_options import CandidateForm
from include.policy_catalogue import REFERENCES
from lab.replay import candidate_policies
from lab.replay.candidate_policies import CandidatePolicy, asks_in_restarts, build_driver
from lab.replay.conditions import Conditions
from lab.replay.drivers import PolicyDriver, ScheduleDriver
from lab.replay.workload import Workload

Forms = Mapping[str, CandidateForm]
BOUND = "bound"
"""The lower bound; its row is the policy of the bound's own choices."""


def list_names() -> tuple[str, ...]:
    """Return all names, rivals before the references."""
    policies = (name for name in candidate_policies.list_names() if name not in REFERENCES)
    return (*policies, *list_rivals(), *REFERENCES, BOUND)


def check_names(chosen: Sequence[str], further: Collection[str] = ()) -> None:
    """Refuse names that no candidate has.

    Args:
        chosen: as written.
        further: names of forms.

    Raises:
        ValueError: with the names that can be chosen.
    """
    candidate_policies.check_names(chosen, (*list_rivals(), BOUND, *further))


def build_candidates(
    chosen: Sequence[str], workload: Workload, conditions: Conditions, forms: Forms | None = None
) -> list[CandidatePolicy]:
    """Return candidates by name.

    Args:
        chosen: names.
        workload: job and load.
        conditions: of the run.
        forms: further candidate -> the form in which another one runs.

    Raises:
        ValueError: a name is not known.
    """
    known = forms or {}
    check_names(chosen, known)
    return [_build_candidate(name, workload, conditions, known) for name in chosen]


def _build_candidate(name: str, workload: Workload, conditions: Conditions, forms: Forms) -> CandidatePolicy:
    form = forms.get(name)
    driver = _build_driver(form or CandidateForm(name, conditions.parameters.get(name, {})), workload, conditions)
    return CandidatePolicy(name, FormedDriver(driver, form) if form else driver, asks_in_restarts(driver))


def _build_driver(form: CandidateForm, workload: Workload, conditions: Conditions) -> PolicyDriver[Any]:
    """Return the driver of a form's candidate, with the form's parameters and headroom."""
    if form.base == BEST_CONSTANT:
        parallelism = find_best_constant(workload, conditions)
        times_s = np.array([workload.start_s], np.int64)
        return ScheduleDriver(times_s, workload.spec.graph().names, parallelism[None, :])
    if form.base in list_rivals():
        return build_rival(form.base, form.parameters)
    change = (lambda policy: WithHeadroom(policy, form.headroom)) if form.headroom else None
    return build_driver(form.base, form.parameters, workload, conditions, change)
