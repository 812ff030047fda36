"""What the planner knows of a job that it has only just met: capacity from its own windows, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from models.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.tuning.capacity_history import History
from models.training.job_facts import JobFacts
from models.training.operator_fits import OperatorPoints
from models.training.recovery_fits import Events
from models.training.train_job import build_alone, fit_jobs

# Reconfigurations take no time in ContTune's experiment, and nothing fails in it.
_RECOVERY = RecoveryModel(0.0, 0.0, 0.0, 0.0, 0.0, 0)
_LATENCY = LatencyModel(np.zeros(0), np.zeros(0))
_JOB = ("papers", "query")


def models_of(histories: Mapping[str, History], top: int) -> JobModels | None:
    """Return the models after what was observed so far; None before anything was.

    There is no trial and nothing is held out: one job, minutes old.

    Args:
        histories: operator -> its K most recent abilities per parallelism.
        top: P, the largest parallelism of the curves.
    """
    largest = max((history[-1].parallelism for history in histories.values() if history), default=0)
    points = tuple(_points(name, history, largest, top) for name, history in histories.items() if history)
    if not points:
        return None
    # Every operator hands on what it gets; see benchmarks.papers.conttune.queries.
    facts = JobFacts(_JOB, {}, points, dict.fromkeys(histories, 1.0), {}, _LATENCY, {}, float("nan"))
    (fits,) = fit_jobs([points])
    return replace(build_alone(facts, fits, Events.none()), recovery=_RECOVERY)


def _points(name: str, history: History, largest: int, top: int) -> OperatorPoints:
    return OperatorPoints(
        _JOB,
        name,
        parallelism=np.array([known.parallelism for known in history], np.int64),
        capacities_per_s=tuple(np.sort(known.recent_per_s) for known in history),
        busiest=np.array([known.busiest_share or 1.0 for known in history]),
        idle=False,
        largest=largest,
        key_groups=float("nan"),
        top=top,
    )
