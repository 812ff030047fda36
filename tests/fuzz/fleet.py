"""Sound raw lines of a fleet: jobs of three vertices at constant rates, polled by the clock, every kind of reply."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from include.flink.raw_format import Endpoint
from tests.spark.raw_builders import (
    SINK,
    SOURCE,
    UPSTREAM,
    WORK,
    checkpoints_body,
    exceptions_body,
    metric,
    ms,
    plan_body,
    record,
)

POLL_S = 300
HOURS = 2
PARALLELISM = {SOURCE: 1, WORK: 2, SINK: 1}


@dataclass(frozen=True)
class FleetJob:
    """A job; ids come from its number."""

    cluster: str
    number: int
    start: datetime

    @property
    def name(self) -> str:
        return f"job {self.number}"

    @property
    def job_id(self) -> str:
        return _hex(f"job {self.number}")

    @property
    def vertex_ids(self) -> dict[str, str]:
        return {vertex: _hex(f"job {self.number} {vertex}") for vertex in PARALLELISM}

    def lines(self) -> Iterator[tuple[datetime, str]]:
        """Yield the time and text of every line of all hours."""
        for step in range(HOURS * 3600 // POLL_S):
            at = self.start + timedelta(seconds=(step + 1) * POLL_S - 10)
            if step % (3600 // POLL_S) == 0:
                plan = plan_body(UPSTREAM, self.vertex_ids)["plan"] | {"jid": self.job_id}  # type: ignore[operator]
                yield at, self._line(at, Endpoint.PLAN, {"plan": plan})
            yield from ((at, line) for line in self._poll(at))

    def _poll(self, at: datetime) -> Iterator[str]:
        vertices = [
            {"id": self.vertex_ids[name], "name": name, "parallelism": p, "maxParallelism": 128, "status": "RUNNING"}
            for name, p in PARALLELISM.items()
        ]
        ran_since = ms(self.start - timedelta(hours=1))
        body = {
            "jid": self.job_id,
            "name": self.name,
            "state": "RUNNING",
            "timestamps": {"RUNNING": ran_since, "FAILED": 0, "RESTARTING": 0},
            "vertices": vertices,
        }
        yield self._line(at, Endpoint.JOB, body)
        yield self._line(at, Endpoint.JOB_METRICS, [{"id": "uptime", "value": "7"}])
        done = at - timedelta(seconds=30)
        yield self._line(at, Endpoint.CHECKPOINTS, checkpoints_body(done - timedelta(seconds=2), done))
        yield self._line(at, Endpoint.EXCEPTIONS, exceptions_body())
        for vertex, vertex_id in self.vertex_ids.items():
            yield self._line(at, Endpoint.VERTEX_METRICS, self._metrics(vertex, at), vertex_id)

    def _metrics(self, vertex: str, at: datetime) -> list[dict[str, object]]:
        ran_s = (at - self.start).total_seconds() + 3600
        passed = {SOURCE: (0.0, 1.0), WORK: (1.0, 0.5), SINK: (0.5, 0.0)}[vertex]
        parallelism = PARALLELISM[vertex]
        totals = {"numRecordsIn": 100.0 * passed[0] * ran_s, "numRecordsOut": 100.0 * passed[1] * ran_s}
        shares = {"busy": 500.0, "idle": 500.0, "backPressured": 0.0}
        result = [metric(name, total, parallelism) for name, total in totals.items()]
        result += [metric(f"{name}TimeMsPerSecond", share * parallelism, parallelism) for name, share in shares.items()]
        return [*result, metric("Source__orders.pendingRecords", 20.0)] if vertex == SOURCE else result

    def _line(self, at: datetime, kind: Endpoint, body: object, vertex_id: str | None = None) -> str:
        return record(at, kind, body, cluster=self.cluster, job_id=self.job_id, vertex_id=vertex_id)


def _hex(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
