"""What a policy sees of a simulated job in an experiment: the last window and a flat forecast."""

from __future__ import annotations

import numpy as np

from include.settings import Planner
from lab.simulation.spec import JobSpec
from lab.simulation.testbed import TestbedWindow, observations
from models.arrays import Floats
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.job_snapshot import Snapshot
from models.policies.protocol import Situation
from models.scheduling.demand import LEVELS, SourceForecast

# The planner's expectation of a step is not used: one bin is enough for it.
_HORIZON = Planner(horizon_h=1, bin_s=3600)
_NOTHING_LEARNT = LatencyModel(np.zeros(0), np.zeros(0))


def nothing_learnt(spec: JobSpec) -> JobModels:
    """Return the models of a job of which nothing is known but its operators' selectivities."""
    nothing = RecoveryModel(0.0, 0.0, 0.0, 0.0, 0.0, 0)
    return JobModels({}, spec.output_ratios, nothing, _NOTHING_LEARNT, spec.edge_ratios)


def situation_after(
    spec: JobSpec, window: TestbedWindow, row: int, rate_per_s: Floats, *, at_s: int, models: JobModels, slots_max: int
) -> Situation:
    """Return the situation of one job after a window.

    Args:
        spec: the job.
        window: the last one of the fleet.
        row: the job's index in it.
        rate_per_s: (O,) source rates, which the forecast repeats.
        at_s: now.
        models: of the job.
        slots_max: most slots.
    """
    graph = spec.graph()
    running = window.parallelism[row, : len(graph.operators)].tolist()
    expected = {name: np.full((len(LEVELS), 1), rate_per_s[graph.position(name)]) for name in graph.sources}
    job = Snapshot(
        now_s=at_s,
        graph=graph,
        running=dict(zip(graph.names, running, strict=True)),
        up=True,
        observations=observations([window], row, len(graph.operators)),
        slots_max=slots_max,
        options=_HORIZON,
        models=models,
    )
    return Situation(job, SourceForecast(at_s, _HORIZON.bin_s, expected))
