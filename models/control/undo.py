"""What a person takes back: our last rescale, or the hold after a foreign change."""

from __future__ import annotations

from dataclasses import dataclass

from include.utc import DAY_S
from models.control.state import Intention, JobHistory, ObservedJob, Origin, Parallelism


@dataclass(frozen=True, slots=True)
class Undo:
    """A demand to take one rescale back; it is a hold of the job as well, which lasts until its end.

    Attributes:
        step_id: of the rescale.
        job_id: of the job that it was sent for.
        undone: upper bounds that it asked for. Where Flink is asked for others, somebody has changed the job since.
        target: upper bounds that were in force before it.
        by: who demands it.
        reason: why, for others to read.
        until_s: epoch seconds; later nothing is undone.
    """

    step_id: str
    job_id: str
    undone: Parallelism
    target: Parallelism
    by: str = ""
    reason: str = ""
    until_s: float = 0.0


def form_undo(undo: Undo | None, history: JobHistory, observed: ObservedJob, now_s: float) -> Intention | None:
    """Return what an undo demands now; None without one, after it was carried out, and after a change of somebody.

    An undo comes from below the lake, where others than the controller write: one that is not of the last rescale, from
    and to the bounds that the log has of it, is none.
    """
    if undo is None or now_s >= undo.until_s or observed.job_id != undo.job_id or not _is_known(undo, history):
        return None
    asked = dict(observed.requested or {})
    if asked != dict(undo.undone):
        return None
    why = f"{undo.by or 'a person'} takes the rescale of step {undo.step_id} back"
    reason = f"{why}: {undo.reason}" if undo.reason else why
    return Intention({**asked, **undo.target}, Origin.UNDO, f"{undo.step_id}-undo", reason, now_s + DAY_S)


def _is_known(undo: Undo, history: JobHistory) -> bool:
    last = history.last_sent or history.to_judge  # of a log of before the last was kept
    return (
        last is not None
        and (last.step_id, last.job_id) == (undo.step_id, undo.job_id)
        and dict(last.target) == dict(undo.undone)
        and {vertex: last.before.get(vertex, count) for vertex, count in last.target.items()} == dict(undo.target)
    )


def name_hold(history: JobHistory) -> str:
    """Return the id by which a person releases the hold after a change that was not the controller's."""
    return name_hold_until(history.held_until_s)


def name_hold_until(until_s: float) -> str:
    """Return the id of the hold that ends at a time, epoch seconds."""
    return f"held-{float(until_s)!r}"


def is_held_after_change(history: JobHistory, released: tuple[str, ...], now_s: float) -> bool:
    """Whether a job is left alone since somebody changed it, and nobody released it, by ids of ``lifted_blocks``."""
    return now_s < history.held_until_s and name_hold(history) not in released
