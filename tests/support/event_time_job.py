"""Counters of a job whose source shows no backlog: it keeps up, falls behind, catches up, and keeps up again.

Its last operator works on 125 records/s; 2,000 fit into the buffers before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from live_replies import SOURCE, WORK

from models.observing.metric_table import TASK_METRICS

NO_WATERMARK = -(2.0**63)
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


def counters(one: Second, watermark_ms: float) -> dict[str, dict[str, float]]:
    """Return what a poll gives of the source, and of what ends the job."""

    def task(total: float, idle_ms: float, held_ms: float, **others: float) -> dict[str, float]:
        busy_ms = 1000.0 * one.at - idle_ms - held_ms
        times = {"idle_total_ms": idle_ms, "backpressured_total_ms": held_ms}
        return {"in_total": total, "busy_total_ms": busy_ms, "busy_max_total_ms": busy_ms, **times, **others}

    source = task(one.taken, one.source_idle_ms, one.source_held_ms, out_total=one.taken)
    return {SOURCE: source, WORK: task(one.worked, one.work_idle_ms, 0.0, watermark_ms=watermark_ms)}


def polls(start_s: float, pace: float | None) -> list[tuple[int, str, dict[str, float]]]:
    """Return polls of 20 s of a job whose event time passes at a pace; without watermarks where there is none."""
    return [
        (one.at, name, values)
        for one in run()[::20]
        for at_ms in (NO_WATERMARK if pace is None else 1000.0 * (start_s + pace * (one.event_s - DELAY_S)),)
        for name, values in counters(one, at_ms).items()
    ]


def metrics(values: dict[str, float]) -> dict[str, float]:
    """Return what a poll gives by the names of Flink's metrics."""
    return {TASK_METRICS[column][0]: value for column, value in values.items()}
