"""A JobManager on loopback that replies as Flink does, and misbehaves where a test says so."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from include.flink.endpoints import SOURCE_METRICS, VERTEX_METRICS

Trouble = Callable[["Request"], None]
ADAPTIVE = [{"key": "jobmanager.scheduler", "value": "adaptive"}]


@dataclass
class FakeJob:
    """A job of two operators unless told otherwise; what is PUT runs at once.

    Its checkpoints are fine: one every ten seconds, the last three seconds ago. For a job whose rescales take the time
    that Flink's take, with savepoints and failures, see ``flink_rescaling.py``.
    """

    job_id: str = "a" * 32
    name: str = "orders"
    state: str = "RUNNING"
    parallelism: dict[str, int] = field(default_factory=lambda: {"1" * 32: 1, "2" * 32: 2})
    names: dict[str, str] = field(default_factory=lambda: {"1" * 32: "Source: orders", "2" * 32: "enrich"})
    status: dict[str, str] = field(default_factory=dict)  # of vertices that are not RUNNING
    groups: dict[str, str] = field(default_factory=dict)
    requested: dict[str, int] | None = None
    lower: dict[str, int] = field(default_factory=dict)  # lower bounds that are not 1
    running_ms: int = 1_795_000_000_000
    user_config: dict[str, str] = field(default_factory=dict)
    now_ms: int | None = None  # by its clock
    submitted_ms: int = 5

    def __post_init__(self) -> None:
        self.requested = dict(self.parallelism) if self.requested is None else self.requested

    def follow(self, now_s: float) -> None:
        """Let time go on until now."""

    def put(self, bounds: dict[str, int], now_s: float) -> None:
        """Take resource requirements."""
        self.requested = bounds
        running = {one: bounds[one] for one in self.parallelism}
        self.running_ms += 1000 * (running != self.parallelism)
        self.parallelism = running

    def checkpoint_config(self) -> dict[str, Any]:
        return {"mode": "exactly_once", "interval": 10_000, "timeout": 600_000, "min_pause": 0, "max_concurrent": 1}

    def checkpoints(self, now_s: float) -> dict[str, Any]:
        done = completed_checkpoint(7, now_s - 3)
        return checkpoint_statistics([done], completed=done)

    def exceptions(self) -> dict[str, Any]:
        return {"exceptionHistory": {"entries": [], "truncated": False}}

    def trigger_checkpoint(self, now_s: float) -> None:
        """Begin a checkpoint."""

    def reply(self) -> dict[str, Any]:
        vertices = [
            {
                "id": vertex_id,
                "name": self.names.get(vertex_id, "x"),
                "parallelism": count,
                "maxParallelism": 128,
                "status": self.status.get(vertex_id, "RUNNING"),
                **({"slotSharingGroupId": self.groups[vertex_id]} if vertex_id in self.groups else {}),
            }
            for vertex_id, count in self.parallelism.items()
        ]
        ids = list(self.parallelism)
        nodes = [{"id": one, "inputs": [{"id": ids[place - 1]}] if place else []} for place, one in enumerate(ids)]
        times = {"RUNNING": self.running_ms}
        listed = {
            "jid": self.job_id,
            "name": self.name,
            "state": self.state,
            "start-time": self.submitted_ms,
            "timestamps": times,
        }
        if self.now_ms is not None:
            listed["now"] = self.now_ms
        return {**listed, "vertices": vertices, "plan": {"nodes": nodes}}


def completed_checkpoint(number: int, at_s: float, state_bytes: int = 1_000_000) -> dict[str, Any]:
    """Return a completed checkpoint as Flink lists it."""
    return {
        "id": number,
        "status": "COMPLETED",
        "is_savepoint": False,
        "trigger_timestamp": round(1000 * at_s) - 500,
        "latest_ack_timestamp": round(1000 * at_s),
        "state_size": state_bytes,
        "checkpoint_type": "CHECKPOINT",
    }


def checkpoint_statistics(history: list[dict[str, Any]], **latest: dict[str, Any] | None) -> dict[str, Any]:
    """Return a ``checkpoints`` reply: its history, the newest first, and the latest of each kind."""
    named = {
        status: sum(one["status"] == status for one in history) for status in ("IN_PROGRESS", "COMPLETED", "FAILED")
    }
    counts = {"restored": int(latest.get("restored") is not None), "total": len(history)}
    counts |= {status.lower(): number for status, number in named.items()}
    of_kind = dict.fromkeys(("completed", "savepoint", "failed", "restored")) | latest
    return {"counts": counts, "summary": {}, "latest": of_kind, "history": history[:10]}


@dataclass(frozen=True)
class Request:
    """One request, to be answered by hand."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str  # without its query
    headers: dict[str, str]
    body: str
    ending: threading.Event
    query: str = ""

    def write(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def write_json(self, content: object, status: int = 200) -> None:
        self.write(json.dumps(content).encode(), status)


class FlinkServer:
    """A cluster; ``troubles`` has what happens instead of a reply, by path or by its end, ``*`` for every path.

    Attributes:
        jobs: what runs.
        requests: what was asked, in order.
        is_allowed: whether a request's headers authenticate it; 401 otherwise.
    """

    def __init__(self, *jobs: FakeJob, clock: Callable[[], float] = time.time) -> None:
        self.jobs = list(jobs)
        self.clock = clock
        self.version: str | None = "2.1.3"
        self.heap_used, self.heap_max = 200e6, 500e6  # of the fullest TaskManager
        self.gc_ms_per_s: float | None = 20.0  # None before 1.20
        self.config: object = list(ADAPTIVE)
        self.free_slots = 5
        self.troubles: dict[str, Trouble] = {}
        self.requests: list[Request] = []
        self.is_allowed: Callable[[dict[str, str]], bool] = lambda headers: True
        self.url = ""
        self.port = 0
        self.ending = threading.Event()

    def asked(self, method: str = "GET") -> list[str]:
        return [request.path for request in self.requests if request.method == method]

    def answer(self, request: Request) -> None:
        self.requests.append(request)
        if not self.is_allowed(request.headers):
            request.write_json({"errors": ["who are you?"]}, 401)
            return
        matching = [trouble for end, trouble in self.troubles.items() if request.path.endswith(end) or end == "*"]
        if matching:
            matching[0](request)
            return
        status, content = self._reply(request)
        request.write_json(content, status)

    def _reply(self, request: Request) -> tuple[int, object]:
        match request.path.strip("/").split("/"):
            case ["jobs", job_id, *leaf] if len(job_id) == 32:
                job = next((one for one in self.jobs if one.job_id == job_id), None)
                if job is None:
                    return 404, {"errors": [f"org.apache.flink.runtime.rest.NotFoundException: Job {job_id} not found"]}
                job.follow(self.clock())
                if leaf == ["resource-requirements"] and request.method == "PUT":
                    return self._put_requirements(job, json.loads(request.body))
                if leaf == ["checkpoints"] and request.method == "POST":
                    job.trigger_checkpoint(self.clock())
                    return 202, {"request-id": "f" * 32}
                return 200, self._of_job(job, leaf)
        for job in self.jobs:
            job.follow(self.clock())
        listed = [{**job.reply(), "vertices": None, "plan": None} for job in self.jobs]
        reported = {} if self.version is None else {"flink-version": self.version}
        known = {
            "/overview": {"slots-total": max(8, self.free_slots), "slots-available": self.free_slots, **reported},
            "/taskmanagers/metrics": self._memory(request.query),
            "/jobs/metrics": [],
            "/jobs/overview": {"jobs": listed},
            "/jobmanager/config": self.config,
        }
        if request.path in known:
            return 200, known[request.path]
        return 404, {"errors": [f"Not found: {request.path}"]}

    def _put_requirements(self, job: FakeJob, bounds: dict[str, Any]) -> tuple[int, object]:
        if set(bounds) != set(job.requested):
            return 400, {"errors": ["The request is incomplete, missing job vertex resource requirements."]}
        for one, bound in bounds.items():
            lower, upper = bound["parallelism"]["lowerBound"], bound["parallelism"]["upperBound"]
            if lower < 1:
                return 400, {"errors": [f"Lower bound [{lower}] of vertex {one} must be greater than zero."]}
            if lower > upper:
                return 400, {"errors": [f"Lower bound [{lower}] of vertex {one} is above its upper bound [{upper}]."]}
        job.lower = {one: bound["parallelism"]["lowerBound"] for one, bound in bounds.items()}
        job.put({one: bound["parallelism"]["upperBound"] for one, bound in bounds.items()}, self.clock())
        return 200, {}

    def _memory(self, query: str) -> list[dict[str, Any]]:
        """Return the metrics that are asked for; none of all where one is not known, as Flink 1.18.1 does."""
        values = {"Memory.Heap.Used": self.heap_used, "Memory.Heap.Max": self.heap_max}
        values["GarbageCollector.All.TimeMsPerSecond"] = self.gc_ms_per_s
        known = {f"Status.JVM.{name}": value for name, value in values.items() if value is not None}
        asked = parse_qs(query).get("get", [""])[0].split(",")
        return [{"id": name, "min": known[name], "max": known[name]} for name in asked if set(asked) <= set(known)]

    def _of_job(self, job: FakeJob, leaf: list[str]) -> object:
        if leaf[:1] == ["vertices"]:
            return [{"id": name, "sum": 1.0} for name in (*VERTEX_METRICS, *SOURCE_METRICS)]
        bounds = {
            one: {"parallelism": {"lowerBound": job.lower.get(one, 1), "upperBound": n}}
            for one, n in job.requested.items()
        }
        known = {
            "": {**job.reply(), "now": round(1000 * self.clock())},
            "checkpoints": job.checkpoints(self.clock()),
            "checkpoints/config": job.checkpoint_config(),
            "exceptions": job.exceptions(),
            "plan": {"plan": job.reply()["plan"]},
            "config": {"jid": job.job_id, "execution-config": {"user-config": job.user_config}},
            "metrics": [{"id": "uptime", "value": "5"}],
            "resource-requirements": bounds,
        }
        return known.get("/".join(leaf), {})


@contextmanager
def serving(server: FlinkServer, tls: ssl.SSLContext | None = None) -> Iterator[FlinkServer]:
    """Run a cluster on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            if len(body.encode()) < length:  # as Flink, which acts on whole requests alone
                return
            path, _, query = self.path.partition("?")
            request = Request(self, self.command, path, dict(self.headers.items()), body, server.ending, query)
            with suppress(OSError):
                server.answer(request)

        do_GET = do_PUT = do_POST = do_PATCH = handle_any  # noqa: N815 - the names that http.server looks for

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def finish_request(self, request, client_address) -> None:
            if tls is not None:  # in the connection's own thread: a client that refuses us must not hold the others
                request.settimeout(10)
                request = tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)

        def handle_error(self, request, client_address) -> None:
            pass

    listener = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    server.port = listener.server_address[1]
    server.url = f"{'https' if tls else 'http'}://localhost:{server.port}"
    try:
        yield server
    finally:
        server.ending.set()
        listener.shutdown()
        listener.server_close()
        thread.join()


# What a server can do instead of replying.


def reply_with(content: object, status: int = 200) -> Trouble:
    return lambda request: request.write_json(content, status)


def on_put(trouble: Trouble, server: FlinkServer) -> Trouble:
    """Return what happens to requests alone; questions are replied to."""

    def act(request: Request) -> None:
        if request.method == "PUT":
            trouble(request)
        else:
            request.write_json(server._reply(request)[1])

    return act


def reply_html(request: Request) -> None:
    request.write(b"<html><title>Please log in</title></html>", Content_Type="text/html")


def reply_500(request: Request) -> None:
    request.write_json({"errors": ["Internal server error."]}, 500)


def redirect(request: Request) -> None:
    request.write(b"", 302, Location="https://login.example.com/oauth?token=t0psecret")


def hang(request: Request) -> None:
    """Never reply."""
    request.ending.wait(60)


def close(request: Request) -> None:
    request.handler.close_connection = True
    request.handler.connection.close()


def reply_500_mb(request: Request) -> None:
    size = 500 * 2**20
    request.handler.send_response(200)
    request.handler.send_header("Content-Length", str(size))
    request.handler.end_headers()
    chunk = b" " * 2**20
    for _ in range(size // len(chunk)):
        request.handler.wfile.write(chunk)


def trickle_body(request: Request) -> None:
    """A byte every fifth of a second: never long enough for a timeout between two bytes."""
    request.handler.send_response(200)
    request.handler.send_header("Content-Length", "100000")
    request.handler.end_headers()
    _trickle(request, b" ")


def trickle_head(request: Request) -> None:
    request.handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _trickle(request, b"a")


def _trickle(request: Request, byte: bytes) -> None:
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s and not request.ending.wait(0.2):
        request.handler.wfile.write(byte)
        request.handler.wfile.flush()
