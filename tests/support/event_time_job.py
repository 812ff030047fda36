"""Counters of a job whose source shows no backlog: it keeps up, falls behind, catches up, and keeps up again.

Its last operator works on 125 records/s; 2,000 fit into the buffers before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DELAY_S = 4.0  # of its watermarks
ARRIVE = {0: 100.0, 300: 200.0, 600: 50.0}
"""Second -> records/s that arrive from then on."""
CARRIES, BUFFERS = 125.0, 2000.0
SECONDS = 1200
KEEPS_UP, FALLS_BEHIND, CATCHES_UP = 280, 580, 700


@dataclass(frozen=True, slots=True)
class Second:
    """What is true at a second: age of what is worked on, its event time, records so far, idle and held up ms."""

    at: int
    age_s: float
    event_s: float
    taken: float
    worked: float
    source_idle_ms: float
    source_held_ms: float
    work_idle_ms: float


def run() -> list[Second]:
    """Return each second of the job; event times are as many seconds after 0 as they happen."""
    at_s = np.arange(SECONDS + 1.0)
    rates = np.array([[rate for since, rate in ARRIVE.items() if at >= since][-1] for at in at_s])
    arrived = np.concatenate(([0.0], np.cumsum(rates)[:-1]))
    result, taken, worked, idle_ms, held_ms, work_idle_ms = [], 0.0, 0.0, 0.0, 0.0, 0.0
    for at in range(SECONDS + 1):
        event_s = float(np.interp(worked, arrived, at_s))
        result.append(Second(at, at - event_s, event_s, taken, worked, idle_ms, held_ms, work_idle_ms))
        now = arrived[min(at + 1, SECONDS)]
        worked = min(worked + CARRIES, now)
        taken = min(worked + BUFFERS, now)
        idle_ms, held_ms = (idle_ms + 500.0, held_ms) if taken == now else (idle_ms, held_ms + 900.0)
        work_idle_ms += 200.0 if worked == now else 0.0
    return result
