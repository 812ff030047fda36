"""What ``tidewise undo`` would take back: our last rescale of a job, unless somebody has changed the job since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.facts import Parallelism
from fleet.log_tables import Row
from models.control.state import JobHistory, Request
from models.policies.memory import load


class NothingToUndoError(ValueError):
    """There is no rescale of ours that could be taken back; the message says why."""


@dataclass(frozen=True, slots=True)
class UndoableRescale:
    """A rescale that can be taken back.

    Attributes:
        job_id, step_id: of Flink's job, and of the step.
        undone, target: vertex id -> upper bound that it asked for, and that was in force before.
        undone_shown, target_shown: the same by operator.
        mode: of the job at its last decision.
    """

    cluster: str
    job: str
    job_id: str
    step_id: str
    undone: Parallelism
    target: Parallelism
    undone_shown: Parallelism
    target_shown: Parallelism
    sent_at_s: float
    mode: str


def find_undoable(newest: Row | None, sent: Row | None) -> UndoableRescale:
    """Return what can be taken back of a job, by its last row of the log and the answer to its last request that was
    sent.

    Raises:
        NothingToUndoError: nothing can.
    """
    if newest is None or sent is None or sent["request"] is None:
        raise NothingToUndoError("Tidewise has not rescaled it within two weeks")
    try:
        request, history = load(Request, sent["request"]), load(JobHistory, newest["history"])
    except ValueError as error:
        raise NothingToUndoError("its last rows of the control log cannot be read") from error
    if request.is_rollback:
        raise NothingToUndoError(f"its last rescale was taken back already ({sent['reason']})")
    if history.job_id != request.job_id:
        raise NothingToUndoError("it was deployed anew since its last rescale")
    in_flight = history.in_flight is not None and history.in_flight.step_id == request.step_id
    if not in_flight and dict(history.known_requested or {}) != dict(request.target):
        raise NothingToUndoError("somebody has changed it since its last rescale, and that stays")
    names = dict(newest["operators"] or ())
    return UndoableRescale(
        cluster=newest["cluster"],
        job=newest["job"],
        job_id=request.job_id,
        step_id=request.step_id,
        undone=dict(request.target),
        target={vertex: request.before.get(vertex, count) for vertex, count in request.target.items()},
        undone_shown=_by_name(request.target, names),
        target_shown=_by_name({**request.target, **request.before}, names),
        sent_at_s=request.sent_at_s,
        mode=newest["mode"] or "",
    )


def _by_name(parallelism: Parallelism, names: Mapping[str, str]) -> dict[str, int]:
    return {names.get(vertex, vertex): count for vertex, count in parallelism.items()}
