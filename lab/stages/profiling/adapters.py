"""The clusters for the deployments of a profiling phase, by the name in ``profiling.adapter``.

An adapter is a function ``(subject) -> ProfilingCluster``.  One of another project is named as ``module:function`` and
must be importable on the executors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from include.domain.graph import JobGraph
from include.settings import Planner
from include.settings.profiling import FLINK, SIMULATED, Profiling
from lab.local_flink.job_client import JobClient
from lab.profiling.profiling import ProfilingCluster
from lab.simulation.profiling_adapter import SimulatedProfiling
from lab.simulation.simulated_replica import AT_THE_SOURCES, build_replica
from lab.stages.profiling.flink_deployments import FlinkDeployments
from models.bundle.job_models import JobModels


@dataclass(frozen=True, slots=True)
class ProfiledSubject:
    """The job to profile.

    Attributes:
        cluster, job: names.
        graph, models, slots_max: of the job.
        options: the planner's settings.
        profiling: of the run.
        seed: for an adapter that draws; from the job and the time.
    """

    cluster: str
    job: str
    graph: JobGraph
    models: JobModels
    slots_max: int
    options: Planner
    profiling: Profiling
    seed: int


Adapter = Callable[[ProfiledSubject], ProfilingCluster]


def simulated_adapter(subject: ProfiledSubject) -> ProfilingCluster:
    """Return deployments of the simulated replica.

    Raises:
        SpecError: no operator of the job has a capacity model.
    """
    spec = build_replica(subject.job, subject.graph, subject.models, subject.slots_max, subject.options)
    return SimulatedProfiling(spec, AT_THE_SOURCES, seed=subject.seed)


def flink_adapter(subject: ProfiledSubject) -> ProfilingCluster:
    """Return side deployments on the Flink cluster of ``profiling.rest_url``.

    Raises:
        ValueError: the settings do not say how the job is started there.
    """
    settings, name = subject.profiling, f"{subject.cluster}/{subject.job}"
    if settings.rest_url is None or name not in settings.jobs:
        raise ValueError(f'profiling.jobs."{name}" is missing: its jar, entry_class and arguments')
    client = JobClient(settings.rest_url, connection=settings.connection)
    return FlinkDeployments(client, name, settings.jobs[name], settings)


ADAPTERS: dict[str, Adapter] = {SIMULATED: simulated_adapter, FLINK: flink_adapter}


def adapter(name: str) -> Adapter:
    """Return an adapter.

    Raises:
        ValueError: there is none of that name.
    """
    if name in ADAPTERS:
        return ADAPTERS[name]
    module, _, function = name.partition(":")
    try:
        result: Adapter = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        known = ", ".join(sorted(ADAPTERS))
        raise ValueError(f'profiling.adapter = "{name}" is neither {known} nor a "module:function": {error}') from error
    return result
