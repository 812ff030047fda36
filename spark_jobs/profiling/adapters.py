"""The clusters for the deployments of a profiling phase, by the name in ``profiling.adapter``.

An adapter is a function ``(subject) -> ProfilingCluster``.  One for a real cluster submits the job once per scale-out
to read a recorded topic; it is named as ``module:function`` and must be importable on the executors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from include.domain.graph import JobGraph
from include.settings import Planner
from models.job_models import JobModels
from models.policies.phoebe.profiling import ProfilingCluster
from models.simulation.profiling_adapter import SimulatedProfiling
from models.simulation.simulated_replica import AT_THE_SOURCES, build_replica


@dataclass(frozen=True, slots=True)
class Subject:
    """The job to profile.

    Attributes:
        cluster, job: names.
        graph, models, slots_max: of the job.
        options: the planner's settings.
        seed: for an adapter that draws; from the job and the time.
    """

    cluster: str
    job: str
    graph: JobGraph
    models: JobModels
    slots_max: int
    options: Planner
    seed: int


Adapter = Callable[[Subject], ProfilingCluster]


def simulated_adapter(subject: Subject) -> ProfilingCluster:
    """Return deployments of the simulated replica.

    Raises:
        SpecError: no operator of the job has a capacity model.
    """
    spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, subject.options)
    return SimulatedProfiling(spec, AT_THE_SOURCES, seed=subject.seed)


ADAPTERS: dict[str, Adapter] = {"simulated": simulated_adapter}


def adapter(name: str) -> Adapter:
    """Return an adapter.

    Raises:
        ValueError: there is none of that name.
    """
    if name in ADAPTERS:
        return ADAPTERS[name]
    module, _, function = name.partition(":")
    try:
        found: Adapter = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(sorted(ADAPTERS))
        raise ValueError(f'profiling.adapter = "{name}" is neither {known} nor a "module:function": {error}') from error
    return found
