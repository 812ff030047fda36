"""Jobs that Flink was given again, by a resource or by a new JobManager: what it may have forgotten of them.

Flink 2.0 and later ignores the map of overrides when an application is submitted (FLINK-38770); the resource then holds
a parallelism that nobody asks Flink for any more.
"""

from __future__ import annotations

from include.utc import DAY_S
from models.control.case import Case
from models.control.state import Intention, JobHistory, ObservedJob, Origin, Parallelism

_SAME_S = 1.0  # Flink tells the time in milliseconds


def is_resubmitted(case: Case) -> bool:
    """Whether Flink was given the job again under its id: by a deployment's resource, or when a JobManager was lost."""
    known_s, reported_s = case.history.submitted_at_s, case.observed.submitted_at_s
    return known_s is not None and reported_s is not None and abs(reported_s - known_s) > _SAME_S


def find_lost(history: JobHistory, observed: ObservedJob) -> Parallelism | None:
    """Return what the job was asked for, the resource still holds, and Flink is not asked for any more.

    It may be the controller's own or a person's that the controller has taken up: the resource says what is wanted.
    """
    declared, asked = dict(observed.declared or {}), dict(observed.requested or {})
    held = {vertex: declared[vertex] for vertex in asked if vertex in declared}
    if held == asked or set(held) != set(asked):
        return None
    sent = [history.in_flight.target] if history.in_flight is not None else []
    lost = [history.lost] if history.lost is not None else []
    known = [history.known_requested] if history.known_requested is not None else []
    return held if any(dict(own) == held for own in (*known, *sent, *lost)) else None


def restore_lost(case: Case) -> Intention | None:
    """Return the intention to ask again for what was lost; None when nothing was, or somebody changed the resource."""
    lost, declared = case.history.lost, case.observed.declared
    if lost is None or declared is None:
        return None
    if any(declared.get(vertex) != count for vertex, count in lost.items()):
        return None
    reason = "the resource holds this parallelism, which Flink lost when it was given the job again (FLINK-38770)"
    return Intention(dict(lost), Origin.RESTORE, "restore", reason, case.now_s + DAY_S)
