"""A small server with Prometheus' HTTP API: one Flink job with a source of two subtasks and a map of four."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

T0 = 1_795_000_000 - 1_795_000_000 % 3600  # 2026-11-18T11:00Z
JOB, SOURCE, MAP = "a" * 32, "1" * 32, "2" * 32
PARALLELISM = {SOURCE: 2, MAP: 4}
NAMES = {SOURCE: "Source:_orders", MAP: "enrich"}
TASK, OPERATOR = "flink_taskmanager_job_task_", "flink_taskmanager_job_task_operator_"


@dataclass
class World:
    """What the server shows.

    Attributes:
        since_s, until_s: samples exist between them, epoch seconds.
        lost: vertex and subtask whose series are gone.
        silent: those of which the times are told and the values are not.
        says: put into every answer.
        times: of samples: as they are, or 0.
        has_jobs: whether there are series of the job; the cluster says that none runs where there are not.
        every_s: between two scrapes.
        apart_s: so much later the map is scraped.
        job_id: of the job.
        backlogs: further labels and group of each pendingRecords of the source.
    """

    since_s: float = T0 - 7200
    until_s: float = float("inf")
    lost: frozenset[tuple[str, int]] = frozenset()
    silent: frozenset[tuple[str, int]] = frozenset()
    says: dict[str, Any] = field(default_factory=dict)
    are_times_zero: bool = False
    has_jobs: bool = True
    job_id: str = JOB
    every_s: int = 30
    apart_s: int = 0
    backlogs: tuple[tuple[str, dict[str, str], float], ...] = (("", {}, 5.0),)
    operator_names: tuple[str, ...] = ("Source:_orders",)
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, query: str, start: int, end: int, step: int) -> dict[str, Any]:
        is_time = query.startswith("timestamp(")
        result = []
        for name, labels, per_s in self._series():
            if not _selects(query, name, labels):
                continue
            if not is_time and (labels.get("task_id", ""), int(labels.get("subtask_index", -1))) in self.silent:
                continue
            values = []
            for at in range(start, end + 1, step):
                later_s = self.apart_s if labels.get("task_id") == MAP else 0
                scraped = at - (at - later_s) % self.every_s
                if not self.since_s <= scraped <= self.until_s:
                    continue
                shown = per_s if per_s < 0 else per_s * (scraped - (T0 - 7200))
                time = 0 if self.are_times_zero else scraped
                values.append([at, str(time if is_time else abs(shown))])
            if values:
                result.append({"metric": labels if is_time else {"__name__": name, **labels}, "values": values})
        return {"status": "success", "data": {"resultType": "matrix", "result": result}, **self.says}

    def _series(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Name, labels, and growth in a second (of counters) or the negative of a constant value."""
        yield "flink_jobmanager_taskSlotsTotal", {"host": "jm"}, -8.0
        yield "flink_jobmanager_numRunningJobs", {"host": "jm"}, -1.0 if self.has_jobs else 0.0
        if not self.has_jobs:
            return
        job = {"job_id": self.job_id, "job_name": "orders"}
        yield "flink_jobmanager_job_numRestarts", job, 0.0
        yield "flink_jobmanager_job_runningTime", job, 1000.0
        for vertex, parallelism in PARALLELISM.items():
            for index in range(parallelism):
                if (vertex, index) in self.lost:
                    continue
                own = {**job, "task_id": vertex, "task_name": NAMES[vertex], "subtask_index": str(index), "tm_id": "t"}
                yield f"{TASK}numRecordsIn", own, 0.0 if vertex == SOURCE else 250.0
                yield f"{TASK}numRecordsOut", own, 0.0
                if vertex == SOURCE:
                    yield from self._of_operators(own)

    def _of_operators(self, own: dict[str, str]) -> Iterator[tuple[str, dict[str, str], float]]:
        for number, operator in enumerate(self.operator_names):
            labels = {**own, "operator_id": f"{number:032x}", "operator_name": operator}
            for group, further, value in self.backlogs:
                yield f"{OPERATOR}{group}pendingRecords", {**labels, **further}, -value
            yield f"{OPERATOR}numRecordsIn", labels, 500.0
            yield f"{OPERATOR}numRecordsOut", labels, 50.0
        yield f"{OPERATOR}numRecordsIn", {**own, "operator_id": "f" * 32, "operator_name": "filter"}, 500.0


def _selects(query: str, name: str, labels: dict[str, str]) -> bool:
    """Whether a selector, within timestamp() perhaps, selects a series."""
    selector = re.sub(r"^timestamp\((.*)\)$", r"\1", query)
    metric, _, matchers = selector.partition("{")
    if metric and metric != name:
        return False
    for label, operator, text in re.findall(r'(\w+)(=~|=)"([^"]*)"', matchers):
        value = name if label == "__name__" else labels.get(label, "")
        if not (re.fullmatch(text, value) if operator == "=~" else value == text):
            return False
    return True


@contextmanager
def pretended_prometheus(world: World) -> Iterator[str]:
    """Run the server; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            world.asked.append(asked)
            result = world.answer(asked["query"], int(asked["start"]), int(asked["end"]), int(asked["step"]))
            body = json.dumps(result).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()
