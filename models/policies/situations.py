"""What a policy is shown of a job with nothing but what is measured now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from include.domain.graph import JobGraph
from models.bundle.job_models import JobModels, LatencyModel
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.policies.protocol import Situation
from models.policies.window_means import source_rates
from models.recovery.recovery_model import UNTRAINED
from models.scheduling.demand import LEVELS, SourceForecast
from models.topology import learn_edge_ratios

HELD_S = 3600  # the one bin of a forecast that says what is measured now


def build_live_situation(job: Snapshot, *, reads_models: bool = False) -> Situation:
    """Return the situation of a job whose forecast holds the load of the last window.

    Args:
        job: with one window at least.
        reads_models: whether the policy is shown the job's models; else those of an untrained job.

    Raises:
        ValueError: there is no window, or a value is none that a situation may have.
    """
    observations, graph = job.observations, job.graph
    if not len(observations):
        raise ValueError("observations: there is no window, from the last of which the load is taken")
    last = observations.rows(np.array([len(observations) - 1]))
    loads = source_rates(last)
    held = {name: np.full((len(LEVELS), 1), loads[graph.position(name)]) for name in graph.sources}
    models = job.models if reads_models else None
    shown = replace(job, models=assume_untrained(graph, observations) if models is None else models)
    return Situation(shown, SourceForecast(job.now_s, HELD_S, held))


def assume_untrained(graph: JobGraph, observations: Observations) -> JobModels:
    """Return the models that are assumed before the first training: priors, and edges as the windows show them.

    Records pass one for one where none were seen to pass.
    """
    passing = dict.fromkeys(graph.names, 1.0)
    taken, sent = observations.processing_rate_per_s, observations.output_rate_per_s
    edges = learn_edge_ratios(graph, taken, sent, observations.idle_share)
    return JobModels({}, passing, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)), edges)
