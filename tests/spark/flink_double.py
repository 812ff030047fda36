"""A test double of a Flink JobManager on loopback: the few endpoints that applying uses, over real HTTP.

Requirements are put as Flink takes them (every vertex must be named, else 400), and after ``delay_s`` the job runs at
them, or at what fits into the slots; meanwhile it is RESTARTING.  Tests against a real cluster stand in ``tests/live``.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class JobManagerDouble:
    """State of the double; ``puts`` counts the requests that change it."""

    job_id: str
    vertices: dict[str, str]  # vertex id -> name
    running: dict[str, int]  # vertex id -> parallelism
    slots: int = 16
    delay_s: float = 0.3
    puts: list[dict[str, int]] = field(default_factory=list)
    drop_reply_of_put: bool = False
    adaptive: bool = True  # else there are no resource requirements
    url: str = ""
    _bounds: dict[str, int] = field(default_factory=dict)
    _restarted_at: float = 0.0
    _ready_at: float = 0.0
    _failed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._bounds = dict(self.running)
        self._ready_at = self._restarted_at = time.time()

    def settle(self) -> bool:
        """Whether the job runs; takes up the requirements once the restart is over."""
        if time.time() < self._ready_at:
            return False
        self.running = {vertex: min(bound, self.slots) for vertex, bound in self._bounds.items()}
        return True

    def fail(self) -> None:
        """Fail the job: it waits for slots, has none meanwhile, and comes back ``delay_s`` after the next request."""
        self._restarted_at, self._ready_at, self._failed = time.time(), math.inf, True

    def overview(self) -> dict[str, Any]:
        waits = self._failed and not self.settle()
        used = 0 if waits else max(self.running.values())
        return {"slots-total": self.slots, "slots-available": self.slots - used, "taskmanagers": 1}

    def job(self) -> dict[str, Any]:
        runs = self.settle()
        stamps = {"CREATED": 1, "RESTARTING": int(self._restarted_at * 1000), "RUNNING": 2}
        if runs:
            stamps["RUNNING"] = int(self._ready_at * 1000)
        state = "RUNNING" if runs else "CREATED" if self._failed else "RESTARTING"
        return {
            "jid": self.job_id,
            "state": state,
            "timestamps": stamps,
            "vertices": [
                {"id": vertex, "name": name, "parallelism": self.running[vertex], "status": state}
                for vertex, name in self.vertices.items()
            ],
        }

    def requirements(self) -> dict[str, Any]:
        return {vertex: {"parallelism": {"lowerBound": 1, "upperBound": p}} for vertex, p in self._bounds.items()}

    def put(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body.keys() != self.vertices.keys():
            return 400, {"errors": ["The request must name every vertex of the job."]}
        with self._lock:
            was_up = self.settle()
            self._bounds = {vertex: int(bound["parallelism"]["upperBound"]) for vertex, bound in body.items()}
            self.puts.append({self.vertices[vertex]: bound for vertex, bound in self._bounds.items()})
            self._ready_at = time.time() + self.delay_s
            if was_up:
                self._restarted_at = time.time()
        return 200, {}


class _Handler(BaseHTTPRequestHandler):
    double: JobManagerDouble

    def do_GET(self) -> None:
        job = f"/jobs/{self.double.job_id}"
        replies = {
            "/overview": self.double.overview,
            job: self.double.job,
        }
        if self.double.adaptive:
            replies[f"{job}/resource-requirements"] = self.double.requirements
        result = replies.get(self.path)
        self._reply(*((200, result()) if result else (404, {"errors": ["Job could not be found."]})))

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, reply = self.double.put(body)
        if self.double.drop_reply_of_put:
            self.close_connection = True
            self.connection.close()
            return
        self._reply(status, reply)

    def _reply(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Keep the tests' output clean."""


@contextmanager
def serving(double: JobManagerDouble) -> Iterator[JobManagerDouble]:
    """Serve the double on a free port of loopback."""
    handler = type("Handler", (_Handler,), {"double": double})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
