"""What a training sees of one row of a replay: its own windows and downtimes, in the arrays of models/training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.domain.graph import JobGraph
from lab.replay.failures import Downtime
from models.bundle.job_models import CauseKind, EventKind
from models.capacity.held_up import find_held_up_share
from models.policies.observations import Observations
from models.training.job_windows import KnownOperator, TrainingHistory, TrainingWindows
from models.training.recovery_fits import RECENT_EVENTS, RecoveryEvents

CLUSTER = "replay"
_CAUSES: dict[EventKind, CauseKind] = {"rescale": "rescale", "restart": "job_failure"}


def build_history(job: str, graph: JobGraph, observed: Observations, slots_max: int) -> TrainingHistory:
    """Return the history of a row; what arrives is known at the broker, and single subtasks are not measured."""
    unknown = np.full(observed.parallelism.shape, np.nan)
    windows = TrainingWindows(
        operators=graph.names,
        start_s=observed.window_start_s.astype(np.int64),
        window_s=np.full(len(observed), float(observed.window_s)),
        parallelism=np.where(observed.disturbed[:, None], 0, observed.parallelism),
        rate_per_s=observed.processing_rate_per_s,
        output_per_s=observed.output_rate_per_s,
        true_rate_per_s=observed.true_processing_rate_per_s,
        busy=observed.busy_share,
        busy_most=unknown,
        held_up=find_held_up_share(graph.list_feeders(), observed.busy_share, observed.backpressured_share),
        latency_ms=observed.latency_ms,
        is_demand=np.ones(unknown.shape, bool),
        is_source=np.array([one.is_source for one in graph.operators]),
        idle_share=observed.idle_share,
    )
    operators = tuple(KnownOperator(one.name, one.upstream, one.max_parallelism) for one in graph.operators)
    return TrainingHistory((CLUSTER, job), windows, operators, slots_max)


def list_events(downtimes: Sequence[Downtime], since_s: float, until_s: float) -> RecoveryEvents:
    """Return the latest of a row's downtimes that began after and were over before these seconds of the run.

    Args:
        downtimes: oldest first.
        since_s: seconds since the start.
        until_s: the same.
    """
    over = [one for one in downtimes if one.at_s >= since_s and one.at_s + one.downtime_s < until_s]
    recent = [one for kind in _CAUSES for one in [each for each in over if each.kind == kind][-RECENT_EVENTS:]]
    recent.sort(key=lambda one: one.at_s)
    return RecoveryEvents(
        job=np.zeros(len(recent), np.int64),
        kind=np.array([one.kind for one in recent], str),
        cause_kind=np.array([_CAUSES[one.kind] for one in recent], str),
        downtime_s=np.array([one.downtime_s for one in recent], float),
        checkpoint_age_s=np.array([one.checkpoint_age_s for one in recent], float),
        state_bytes=np.full(len(recent), np.nan),
    )
