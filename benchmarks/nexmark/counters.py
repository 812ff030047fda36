"""A job's counters by the replies of Flink itself, read without any part of Tidewise that reads metrics: the truth."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.nexmark.experiment import POLL_EVERY_S
from lab.local_flink.job_client import JobClient

FETCHED_AFTER_S = 1.5  # the JobManager answers with what it had, and fetches anew because it was asked
_READINGS = 40  # of a series: more than the length of a window and of what settles


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of a vertex over all its subtasks since they began."""

    name: str
    parallelism: int
    read: float
    written: float
    busy_ms: float
    backpressured_ms: float


@dataclass(frozen=True, slots=True)
class Flow:
    """What a vertex did between two readings.

    Attributes:
        in_per_s, out_per_s: records.
        busy, backpressured: share of the time of a mean subtask.
    """

    name: str
    parallelism: int
    in_per_s: float
    out_per_s: float
    busy: float
    backpressured: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of jobs at one time: job id -> vertex id -> counters."""

    at_s: float
    jobs: Mapping[str, Mapping[str, Counters]]


def read_counters(client: JobClient, job_ids: list[str]) -> Reading:
    """Return the counters of now."""
    for job_id in job_ids:
        client.job(job_id)
    time.sleep(FETCHED_AFTER_S)
    at_s = time.time()
    return Reading(at_s, {job_id: _vertices(client, job_id) for job_id in job_ids})


def compare(before: Reading, after: Reading, job_id: str) -> dict[str, Flow]:
    """Return vertex id -> flow; NaN where the vertex was rescaled in between."""
    seconds = after.at_s - before.at_s
    result = dict[str, Flow]()
    for vertex, now in after.jobs[job_id].items():
        then = before.jobs[job_id].get(vertex)
        same = then is not None and then.parallelism == now.parallelism and now.read >= then.read
        first = then if then is not None and same else Counters(now.name, 0, *([math.nan] * 4))
        subtask_ms = 1000 * seconds * now.parallelism
        result[vertex] = Flow(
            now.name,
            now.parallelism,
            (now.read - first.read) / seconds,
            (now.written - first.written) / seconds,
            (now.busy_ms - first.busy_ms) / subtask_ms,
            (now.backpressured_ms - first.backpressured_ms) / subtask_ms,
        )
    return result


class CounterSeries:
    """Records into the vertices of one job by its own counters, over time."""

    def __init__(self, client: JobClient, job_id: str) -> None:
        self._client, self._job_id = client, job_id
        self._readings: deque[tuple[float, Mapping[str, Counters]]] = deque(maxlen=_READINGS)

    def read(self) -> None:
        """Read the counters of now."""
        self._readings.append((time.time(), _vertices(self._client, self._job_id)))

    def rates_between(self, start_s: float, end_s: float) -> dict[str, float]:
        """Return vertex id -> records/s in, linear between readings; none of a vertex rescaled meanwhile."""
        result = dict[str, float]()
        for vertex in self._readings[-1][1] if self._readings else ():
            known = [(at_s, one[vertex].read) for at_s, one in self._readings if vertex in one]
            at_s, read = np.array(known).T
            inside = (at_s >= start_s - POLL_EVERY_S) & (at_s <= end_s + POLL_EVERY_S)
            if at_s[0] <= start_s and at_s[-1] >= end_s and (np.diff(read[inside]) >= 0).all():
                first, last = np.interp([start_s, end_s], at_s, read)
                result[vertex] = float(last - first) / (end_s - start_s)
        return result


def _vertices(client: JobClient, job_id: str) -> dict[str, Counters]:
    return {
        vertex["id"]: Counters(
            vertex["name"],
            int(vertex["parallelism"]),
            float(vertex["metrics"]["read-records"]),
            float(vertex["metrics"]["write-records"]),
            float(vertex["metrics"]["accumulated-busy-time"]),
            float(vertex["metrics"]["accumulated-backpressured-time"]),
        )
        for vertex in client.job(job_id)["vertices"]
    }
