"""Replies of one made-up job, one call each, for the tests of live windows; times in seconds after ``T0_S``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from include.flink.raw_format import Endpoint, RawRecord

T0_S = 1_795_000_200  # on a window of five minutes
SOURCE, WORK = "Source: orders", "enrich"
METRICS = {
    "taken": ("numRecordsIn",),
    "sent": ("numRecordsOut",),
    "busy_ms": ("accumulateBusyTimeMs",),
    "idle_ms": ("accumulateIdleTimeMs",),
    "backpressured_ms": ("accumulateBackPressuredTimeMs",),
    "pending": ("Source__orders.pendingRecords",),
}


def ms(second: float) -> int:
    return round(1000 * (T0_S + second))


def metric(name: str, value: Any, parallelism: int = 1, **others: Any) -> dict[str, Any]:
    """Return a metric of equal subtasks: a time, and a watermark, by the mean of them, anything else by their sum."""
    is_time = "TimeMs" in name or "Watermark" in name
    total, mean = value, value
    if isinstance(value, float | int) and not isinstance(value, bool):
        total, mean = (value * parallelism, value) if is_time else (value, value / parallelism)
    return {"id": name, "min": mean, "max": mean, "avg": mean, "sum": total, "skew": 0.0, **others}


@dataclass
class Job:
    """A source that feeds one operator."""

    job_id: str = "a" * 32
    name: str = "orders"
    cluster: str = "c"
    vertices: dict[str, str] = field(default_factory=lambda: {SOURCE: "1" * 32, WORK: "2" * 32})
    parallelism: dict[str, int] = field(default_factory=lambda: {SOURCE: 1, WORK: 2})

    def record(self, second: float, kind: str, body: Any, vertex_id: str | None = None, status: int = 200) -> RawRecord:
        text = body if isinstance(body, str) else json.dumps(body)
        return RawRecord(ms(second), self.cluster, str(kind), f"/{kind}", self.job_id, vertex_id, status, text)

    def body(self, running_s: float = -9999, state: str = "RUNNING", **others: Any) -> dict[str, Any]:
        vertices = [
            {"id": self.vertices[name], "name": name, "parallelism": p, "maxParallelism": 128, "status": "RUNNING"}
            for name, p in self.parallelism.items()
        ]
        times = {"RUNNING": ms(running_s), **others.pop("timestamps", {})}
        return {"name": self.name, "state": state, "timestamps": times, "vertices": vertices, **others}

    def job(self, second: float, **options: Any) -> RawRecord:
        return self.record(second, Endpoint.JOB, self.body(**options))

    def plan(self, second: float) -> RawRecord:
        names = list(self.vertices)
        nodes = [
            {"id": self.vertices[name], **({"inputs": [{"id": self.vertices[names[place - 1]]}]} if place else {})}
            for place, name in enumerate(names)
        ]
        return self.record(second, Endpoint.PLAN, {"plan": {"nodes": nodes[::-1]}})

    def metrics(self, second: float, operator: str = WORK, **values: Any) -> RawRecord:
        """Return metrics by the short names of ``METRICS``, or by Flink's."""
        p = self.parallelism[operator]
        result = [metric(METRICS.get(name, (name,))[0], value, p) for name, value in values.items()]
        return self.record(second, Endpoint.VERTEX_METRICS, result, self.vertices[operator])

    def start(self) -> list[RawRecord]:
        """Return what names the job, shortly before ``T0_S``."""
        return [self.job(-30), self.plan(-29)]
