"""The events of a run, and the loads that they make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LOW, HIGH = 0.7, 1.9
"""Loads in multiples of what one subtask of the costly vertex can process: one has room, two are needed."""
TAIL_S = 7200


class Kind(StrEnum):
    """What happens at an event."""

    STEEP_RISE = "steep rise"
    SLOW_RISE = "slow rise"
    FALL = "fall"
    LOST_TASK_MANAGER = "lost TaskManager"
    SAVEPOINT = "savepoint"
    PERSON = "a person's rescale"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to all jobs at a time, s since the beginning of the run, until the next."""

    kind: Kind
    begins_s: int
    ends_s: int


def make_schedule(minutes: float = 44.0) -> tuple[Event, ...]:
    """Return the events of a run: after a start of a tenth of it, each kind once, the loads falling twice."""
    shares = (
        (Kind.STEEP_RISE, 0.10),
        (Kind.FALL, 0.33),
        (Kind.SLOW_RISE, 0.42),
        (Kind.LOST_TASK_MANAGER, 0.66),
        (Kind.SAVEPOINT, 0.80),
        (Kind.PERSON, 0.88),
    )
    begins = [round(60 * minutes * share) for _, share in shares]
    ends = [*begins[1:], round(60 * minutes)]
    return tuple(Event(kind, begin, end) for (kind, _), begin, end in zip(shares, begins, ends, strict=True))


def make_trace(schedule: tuple[Event, ...], full_per_s: float, lead_s: int) -> tuple[tuple[int, float], ...]:
    """Return (s since the job was submitted, records/s) of a job.

    Args:
        schedule: of the run.
        lead_s: from the submission to the beginning of the run.
        full_per_s: what one subtask of the costly vertex can process of the job's load, records/s.
    """
    low, high = LOW * full_per_s, HIGH * full_per_s
    points, load = [(0, low)], low
    for event in schedule:
        after = {Kind.STEEP_RISE: high, Kind.SLOW_RISE: high, Kind.FALL: low}.get(event.kind, load)
        half = (event.begins_s + event.ends_s) // 2
        reached_s = half if event.kind == Kind.SLOW_RISE else event.begins_s
        points += [(lead_s + event.begins_s - 1, load), (lead_s + reached_s, after)]
        load = after
    return (*points, (lead_s + schedule[-1].ends_s + TAIL_S, load))
