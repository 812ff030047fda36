"""The instruments of a job, read over REST every second without any part of Tidewise that reads metrics."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchmarks.live.measures import Reading
from include.flink.endpoints import available, vertex_metric_names_path, vertex_metrics_path
from include.flink.faults import FlinkError
from include.threads import running_beside
from lab.local_flink.job_client import JobClient

READ_EVERY_S = 1.0
_SOURCE = ("emittedInAll", "pendingRecords", "oldestDueMs")
_SINK = ("receivedInAll", "oldestArrivedMs")
_WHOLE_SHARE = 0.99  # its two parts are read one after the other, and a poll of Flink's is some seconds old
_ENDS = {"FAILED", "FINISHED", "CANCELED"}
_ALL = (*_SOURCE, *_SINK)


class Instruments:
    """Readings of one job.

    Args:
        client: of its cluster.
        job_id: of the job.
        costly: name of the vertex that limits it.
        submitted_s: epoch seconds of its submission.
        count_due: the records that are due by a second since then.

    Attributes:
        readings: so far, in order.
        trouble: that the job ended; empty while it did not.
        emitted, received: the last counts that were shown, of source and sink, since the submission.
    """

    def __init__(
        self, client: JobClient, job_id: str, costly: str, submitted_s: float, count_due: Callable[[float], float]
    ) -> None:
        self._client, self._job_id, self._costly, self._submitted_s = client, job_id, costly, submitted_s
        self._count_due = count_due
        self._paths: list[str] = []
        self._ended = threading.Event()
        self.readings: list[Reading] = []
        self.trouble = ""
        self._due = 0.0
        self.emitted = self.received = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read until the end of the block."""
        with running_beside(self._read_on, self._ended):
            yield

    def read(self) -> Reading:
        """Return the reading of now."""
        at_s = time.time() - self._submitted_s
        try:
            job = self._client.job(self._job_id)
            bounds = self._client.upper_bounds(self._job_id)
        except FlinkError:
            return Reading(at_s, False, 0, (0, 0), math.nan, math.nan, math.nan)
        vertices = job["vertices"]
        if job["state"] in _ENDS:
            self.trouble = f"the job ended: {job['state']}"
        is_up = job["state"] == "RUNNING" and all(one["status"] == "RUNNING" for one in vertices)
        costly = next((one["id"] for one in vertices if one["name"] == self._costly), "")
        wanted = (bounds.get(costly, 0), max(bounds.values(), default=0))
        slots = max((int(one["parallelism"]) for one in vertices), default=0)
        shown = self._read_metrics(vertices) if is_up else {}
        self.emitted = round(shown.get("emittedInAll", self.emitted))
        self.received = round(shown.get("receivedInAll", self.received))
        sink_ms = shown.get("oldestArrivedMs", -1.0)
        return Reading(
            at_s,
            is_up,
            slots,
            wanted,
            shown.get("pendingRecords", math.nan),
            shown.get("oldestDueMs", math.nan) / 1000,
            sink_ms / 1000 if sink_ms >= 0 else math.nan,
        )

    def _read_on(self) -> None:
        next_s = time.monotonic()
        while not self._ended.is_set():
            self.readings.append(self.read())
            next_s = max(next_s + READ_EVERY_S, time.monotonic())
            self._ended.wait(next_s - time.monotonic())

    def _read_metrics(self, vertices: list[Mapping[str, Any]]) -> dict[str, float]:
        """Return name -> sum over subtasks and sinks, of ages the most; empty while not all of them are shown."""
        try:
            self._paths = self._paths or self._list_paths(vertices)
            shown = [one for path in self._paths for one in self._client.transport.get_json(path)]
        except (FlinkError, KeyError):
            self._paths = []
            return {}
        result: dict[str, float] = {}
        for one in shown:  # of several sinks each has its own
            name = str(one["id"]).rpartition(".")[2]
            if name.startswith("oldest"):
                result[name] = max(result.get(name, -math.inf), float(one["max"]))
            else:
                result[name] = result.get(name, 0.0) + float(one["sum"])
        if set(result) != set(_ALL):
            self._paths = []
            return {}
        due = result["emittedInAll"] + result["pendingRecords"]
        if not is_whole(due, self._due, self._count_due(time.time() - self._submitted_s)):
            return {}
        self._due = max(self._due, due)
        return result

    def _list_paths(self, vertices: list[Mapping[str, Any]]) -> list[str]:
        """Return the paths of the metrics; raises KeyError while not all of them are there."""
        paths, missing = [], set(_ALL)
        for vertex in vertices:
            listed = self._client.transport.get_json(vertex_metric_names_path(self._job_id, vertex["id"]))
            names = available(_ALL, [one["id"] for one in listed])
            missing -= {name.rpartition(".")[2] for name in names}
            if names:
                paths.append(vertex_metrics_path(self._job_id, vertex["id"], names))
        if missing:
            raise KeyError(*sorted(missing))
        return paths


def is_whole(due: float, before: float, most: float) -> bool:
    """Whether a reading has the share of every reader of the source once.

    What is due never falls: where it does, not every reader has its shares back after a restart. And it is never more
    than the load was: where it is, Flink still shows a subtask that was lost beside the one that has its shares now.

    Args:
        due: records emitted and pending, by the reading.
        before: by an earlier one.
        most: by the load.
    """
    return _WHOLE_SHARE * before <= due <= most / _WHOLE_SHARE
