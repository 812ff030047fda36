"""The states of jobs, and with what those begin that their policy does not remember: learnt from many jobs at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from include.policy_catalogue import entry_of, import_object
from include.settings import Settings
from models.hosting.memories import store
from models.policies.protocol import PastLoads
from spark_jobs.by_job import Columns
from spark_jobs.plan_inputs.job_state import JobState

log = logging.getLogger(__name__)


def past_loads_of(columns: Columns) -> PastLoads:
    """Return loads as a policy is shown them."""
    return PastLoads(columns["at"].astype(np.int64), columns["load_per_s"].astype(float))


def begin_states(settings: Settings, known: Iterable[JobState]) -> Iterator[JobState]:
    """Yield the states of jobs; one that is new to a policy that learns from past loads remembers what they tell."""
    states, new = list(known), dict[str, list[int]]()
    for place, state in enumerate(states):
        if state.past_loads is not None:
            new.setdefault(settings.planner.policy_of(state.cluster, state.job), []).append(place)
    for name, places in new.items():
        for place, state in zip(places, _learn(name, [states[place] for place in places]), strict=True):
            states[place] = state
    yield from states


def _learn(name: str, states: list[JobState]) -> list[JobState]:
    """Return the states with memories; as they are where the policy learns job by job, when a job is planned."""
    path = entry_of(name).past_learner
    if path is None:
        return states
    try:
        memories = import_object(path)([past_loads_of(state.past_loads) for state in states if state.past_loads])
        return [
            replace(state, memory=store(name, memory), memory_policy=name)
            for state, memory in zip(states, memories, strict=True)
        ]
    except Exception:  # when they are planned, it shows whose loads they are
        log.exception("past loads of %d jobs of policy %s", len(states), name)
        return states
