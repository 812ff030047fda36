"""What a stop of a job was: a rescale or a restart, and why."""

from __future__ import annotations

import re

from models.bundle.job_models import CauseKind, EventKind
from models.observing.stops import Stop, Vertices

# How Flink words the loss of a TaskManager: by its heartbeat, its connections or the resource manager.
_LOST_TASK_MANAGER = re.compile(
    r"no longer reachable|task ?manager.*(lost|closed|timed out|terminat|fail)|heartbeat of task ?manager"
)


def event_kind(stop: Stop) -> EventKind:
    """Return the kind of a stop: a rescale ran again at another parallelism and was no failure."""
    levels = [None if run is None else _levels(run.vertices) for run in (stop.before, stop.after)]
    is_changed = None not in levels and levels[0] != levels[1]
    return "rescale" if stop.cause is None and not stop.is_followed and is_changed else "restart"


def cause_kind(stop: Stop) -> CauseKind:
    """Return the kind, finer than :func:`event_kind`: which part of a recovery takes how long depends on it."""
    before, after = stop.before, stop.after
    if before is not None and after is not None and before.job_id != after.job_id:
        return "upgrade"
    if event_kind(stop) == "rescale":
        return "rescale"
    if stop.cause is not None and _LOST_TASK_MANAGER.search(stop.cause.lower()):
        return "taskmanager_lost"
    return "job_failure"


def _levels(vertices: Vertices | None) -> list[tuple[str, int]] | None:
    """Return the parallelism by vertex: another name is no rescale."""
    return None if vertices is None else [(vertex_id, parallelism) for vertex_id, parallelism, _ in vertices]
