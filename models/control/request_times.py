"""How long the states of one request lasted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """What the states of a request took, s, each from the end of the one before; None where that is not known.

    Attributes:
        accepted_s: until Flink was first seen to have it.
        slots_s: until slots that were missing had come; None where none were.
        waited_s: until the job stopped for it: Flink waits for a checkpoint, and for its rests.
        restored_s: until all vertices ran as requested.
        caught_up_s: until no record was late.
    """

    accepted_s: float | None = None
    slots_s: float | None = None
    waited_s: float | None = None
    restored_s: float | None = None
    caught_up_s: float | None = None
