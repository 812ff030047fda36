"""Raw files for the tests of ingestion: a small job polled by the clock, written as a poller writes it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from include.flink.raw_format import Endpoint, RawRecord, hour_directory

JOB_ID = "a" * 32
SOURCE, WORK, SINK = "Source: orders", "enrich", "sink: Writer"
VERTEX_IDS = {SOURCE: "1" * 32, WORK: "2" * 32, SINK: "3" * 32}
UPSTREAM = {SOURCE: [], WORK: [SOURCE], SINK: [WORK]}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


START = utc("2026-11-20T10:00")
"""First hour of what is ingested together (``situations.py``)."""
HOUR = timedelta(hours=1)


def ms(timestamp: datetime) -> int:
    return round(timestamp.timestamp() * 1000)


def record(
    at: datetime,
    kind: Endpoint | str,
    body: object,
    *,
    cluster: str = "c5m",
    job_id: str | None = JOB_ID,
    vertex_id: str | None = None,
    status: int = 200,
) -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    return RawRecord(ms(at), cluster, str(kind), f"/{kind}", job_id, vertex_id, status, text).to_line()


def write(raw: Path, hour: datetime, lines: Iterable[str], *, cluster: str = "c5m", name: str = "a.jsonl.gz") -> Path:
    path = hour_directory(raw, cluster, hour) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    return path


def job_body(
    parallelism: Mapping[str, int], running_at: datetime, *, name: str = "orders", state: str = "RUNNING", **stamps: int
) -> dict[str, object]:
    timestamps = {"CREATED": 1, "RESTARTING": 0, "CANCELLING": 0, "RUNNING": ms(running_at), **stamps}
    vertices = [
        {"id": VERTEX_IDS[vertex], "name": vertex, "parallelism": p, "maxParallelism": 128, "status": "RUNNING"}
        for vertex, p in parallelism.items()
    ]
    return {"jid": JOB_ID, "name": name, "state": state, "timestamps": timestamps, "vertices": vertices}


def plan_body(
    upstream: Mapping[str, Sequence[str]] = UPSTREAM, ids: Mapping[str, str] = VERTEX_IDS
) -> dict[str, object]:
    """Sinks first, as Flink lists them; a source has no ``inputs``."""
    nodes = []
    for vertex, feeding in reversed(upstream.items()):
        inputs = [{"num": i, "id": ids[feeder], "ship_strategy": "HASH"} for i, feeder in enumerate(feeding)]
        nodes.append({"id": ids[vertex], "parallelism": 1, **({"inputs": inputs} if inputs else {})})
    return {"plan": {"jid": JOB_ID, "name": "orders", "nodes": nodes}}


def metric(name: str, total: float | str, parallelism: int = 1) -> dict[str, object]:
    mean = total / parallelism if isinstance(total, float | int) else total
    return {"id": name, "min": mean, "max": mean, "avg": mean, "sum": total, "skew": 0.0}


def checkpoints_body(triggered_at: datetime, acknowledged_at: datetime, size: int = 1000) -> dict[str, object]:
    completed = {
        "id": 1,
        "status": "COMPLETED",
        "trigger_timestamp": ms(triggered_at),
        "latest_ack_timestamp": ms(acknowledged_at),
        "state_size": size,
    }
    return {"counts": {}, "latest": {"completed": completed}, "history": []}


def exceptions_body(*failed: tuple[datetime, str]) -> dict[str, object]:
    entries = [{"exceptionName": "E", "stacktrace": f"{text}\n\tat x", "timestamp": ms(at)} for at, text in failed]
    return {"exceptionHistory": {"entries": entries, "truncated": False}}


@dataclass
class PolledJob:
    """A job of three vertices at constant rates, whose counters run from ``running_at``.

    Source and ``enrich`` pass ``rate_per_s`` records, the sink gets half of them.  ``lag`` records are pending at every
    poll.  Where ``counts_operator``, the source operator's own counter is polled, too.
    ``ahead`` is the JobManager's clock less that of the polls, where its replies tell it.
    """

    running_at: datetime
    cluster: str = "c5m"
    rate_per_s: float = 100.0
    busy_ms: float = 500.0
    lag: float = 200.0
    parallelism: dict[str, int] = field(default_factory=lambda: {SOURCE: 1, WORK: 2, SINK: 1})
    counts_operator: bool = False
    ahead: timedelta | None = None

    def metrics(self, vertex: str, at: datetime) -> list[dict[str, object]]:
        ran_s = (at - self.running_at).total_seconds()
        p = self.parallelism[vertex]
        passed = {SOURCE: (0.0, 1.0), WORK: (1.0, 0.5), SINK: (0.5, 0.0)}[vertex]
        rates = {"numRecordsIn": passed[0] * self.rate_per_s, "numRecordsOut": passed[1] * self.rate_per_s}
        result = [metric(name, rate * ran_s, p) for name, rate in rates.items()]
        result += [metric(f"{name}PerSecond", rate, p) for name, rate in rates.items()]
        shares = {"busy": self.busy_ms, "idle": 1000.0 - self.busy_ms, "backPressured": 0.0}
        result += [metric(f"{name}TimeMsPerSecond", share * p, p) for name, share in shares.items()]
        if vertex == SOURCE:
            result.append(metric("Source__orders.pendingRecords", self.lag))
            if self.counts_operator:
                result.append(metric("Source__orders.numRecordsOut", self.rate_per_s * ran_s))
        return result

    def vertex_line(self, vertex: str, at: datetime, body: object = None) -> str:
        result = self.metrics(vertex, at) if body is None else body
        return record(at, Endpoint.VERTEX_METRICS, result, vertex_id=VERTEX_IDS[vertex], cluster=self.cluster)

    def poll(self, at: datetime) -> list[str]:
        body = job_body(self.parallelism, self.running_at + (self.ahead or timedelta()))
        if self.ahead is not None:
            body["now"] = ms(at + self.ahead)
        job = record(at, Endpoint.JOB, body, cluster=self.cluster)
        return [job, *(self.vertex_line(vertex, at) for vertex in self.parallelism)]

    def hour(self, start: datetime, every_s: int = 300) -> list[str]:
        """Return the lines of one hour, polled 10 s before the end of every step."""
        lines = [record(start + timedelta(seconds=5), Endpoint.PLAN, plan_body(), cluster=self.cluster)]
        for step in range(3600 // every_s):
            lines += self.poll(start + timedelta(seconds=(step + 1) * every_s - 10))
        return lines
