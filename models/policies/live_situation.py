"""What a policy that reacts is shown at an evaluation; the same in the controller and in a replay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from include.domain.graph import JobGraph
from include.settings import Planner
from models.job_models import JobModels, LatencyModel
from models.policies.observations import Observations
from models.policies.protocol import Situation
from models.policies.window_means import source_rates
from models.recovery import UNTRAINED
from models.scheduling.demand import LEVELS, SourceForecast
from models.topology import learn_edge_ratios

HELD_S = 3600  # the one bin of a forecast that says what is measured now


def build_live_situation(
    now_s: int,
    graph: JobGraph,
    running: Mapping[str, int],
    observations: Observations,
    *,
    models: JobModels | None,
    slots_max: int,
    options: Planner,
    seed: int,
) -> Situation:
    """Return a situation with windows up to now; steps come without expectations.

    The forecast holds the load of the last window.

    Args:
        now_s: epoch seconds.
        graph: the job.
        running: operator -> parallelism.
        observations: at least one window, those of the last ``options.observed_h`` hours.
        models: of the job; None for those of an untrained one.
        slots_max: most slots of the job.
        options: the planner's settings.
        seed: for random numbers.

    Raises:
        ValueError: there is no window, or a value is none that a situation may have.
    """
    if not len(observations):
        raise ValueError("observations: there is no window, from the last of which the load is taken")
    last = observations.rows(np.array([len(observations) - 1]))
    loads = source_rates(last)
    held = {name: np.full((len(LEVELS), 1), loads[graph.position(name)]) for name in graph.sources}
    return Situation(
        as_of_s=now_s,
        graph=graph,
        parallelism=running,
        models=assume_untrained(graph, observations) if models is None else models,
        forecast=SourceForecast(now_s, HELD_S, held),
        slots_max=slots_max,
        options=options,
        observations=observations,
        seed=seed,
        expects=False,
    )


def assume_untrained(graph: JobGraph, observations: Observations) -> JobModels:
    """Return the models that are assumed before the first training: priors, and edges as the windows show them.

    Records pass one for one where none were seen to pass.
    """
    passing = dict.fromkeys(graph.names, 1.0)
    edges = learn_edge_ratios(graph, observations.processing_rate_per_s, observations.output_rate_per_s)
    return JobModels({}, passing, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)), edges)
