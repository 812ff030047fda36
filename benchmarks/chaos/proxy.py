"""An HTTP proxy on loopback between the controller and Flink: it hands on, interferes, and records every PUT."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

_REQUIREMENTS = re.compile(r"/jobs/([0-9a-f]{32})/resource-requirements")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of Flink, or one that the proxy makes up."""

    status: int
    body: bytes
    content_type: str = "application/json"


@dataclass(slots=True)
class Put:
    """A request of a controller for a parallelism, as the proxy saw it.

    Attributes:
        job_id: from its path.
        bounds: vertex id -> upper bound.
        received_s: epoch seconds.
        forwarded_s: when it was handed on to Flink; more than once when it was duplicated.
        answered_s: when the controller had a reply, or the connection was closed.
        statuses: of Flink's replies.
        trouble: what was done to it; empty when it was handed on as it came.
    """

    job_id: str
    bounds: dict[str, int]
    received_s: float
    forwarded_s: list[float] = field(default_factory=list)
    answered_s: float | None = None
    statuses: list[int] = field(default_factory=list)
    trouble: str = ""


class Exchange:
    """One request and what can be done with it."""

    def __init__(self, handler: BaseHTTPRequestHandler, upstream: Callable[[Exchange], Reply], put: Put | None) -> None:
        self.handler, self.method, self.path = handler, handler.command, handler.path
        size = int(handler.headers.get("Content-Length") or 0)
        self.body = handler.rfile.read(size)
        self.put = put
        self._upstream = upstream

    def forward(self) -> Reply:
        """Hand the request on; returns Flink's reply."""
        if self.put is not None:
            self.put.forwarded_s.append(time.time())
        reply = self._upstream(self)
        if self.put is not None:
            self.put.statuses.append(reply.status)
        return reply

    def answer(self, reply: Reply, **headers: str) -> None:
        """Reply to the controller."""
        self._write(reply, reply.body, headers)

    def answer_half(self, reply: Reply) -> None:
        """Begin to reply, and close the connection in the middle of the body."""
        self._write(reply, reply.body[: len(reply.body) // 2], {})
        self.close()

    def close(self) -> None:
        """Close the connection without a reply."""
        self.handler.close_connection = True
        with suppress(OSError):
            self.handler.connection.shutdown(2)

    def _write(self, reply: Reply, body: bytes, headers: dict[str, str]) -> None:
        self.handler.send_response(reply.status)
        for name, value in {"Content-Type": reply.content_type, **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("Content-Length", str(max(len(reply.body), 2 if body != reply.body else 0)))
        self.handler.end_headers()
        self.handler.wfile.write(body)


Trouble = Callable[[Exchange], None]


def hand_on(exchange: Exchange) -> None:
    """Do what a proxy should."""
    exchange.answer(exchange.forward())


class Proxy:
    """Hands requests on to Flink, and interferes where it was told to.

    Args:
        upstream: Flink's REST address.

    Attributes:
        url: its own address.
        puts: all requests for a parallelism, in the order in which they came.
    """

    def __init__(self, upstream: str) -> None:
        self.url = ""
        self.puts: list[Put] = []
        self._flink = upstream
        self._pool = urllib3.PoolManager(maxsize=32, retries=False, timeout=urllib3.Timeout(connect=5, read=60))
        self._lock = threading.Lock()
        self._for_puts: dict[str, Trouble] = {}
        self._for_replies: tuple[Trouble, float, random.Random] | None = None
        self._for_paths: dict[re.Pattern[str], Trouble] = {}
        self._hits = 0
        self._delay_s = 0.0

    @property
    def hits(self) -> int:
        """How many requests were interfered with."""
        return self._hits

    @contextmanager
    def troubling_put(self, job_id: str, trouble: Trouble) -> Iterator[None]:
        """Interfere with the next request for a parallelism of a job."""
        with self._lock:
            self._for_puts[job_id] = trouble
        try:
            yield
        finally:
            with self._lock:
                self._for_puts.pop(job_id, None)

    @contextmanager
    def troubling_replies(self, trouble: Trouble, share: float, rng: random.Random) -> Iterator[None]:
        """Interfere with a share of all requests other than PUTs."""
        self._for_replies = trouble, share, rng
        try:
            yield
        finally:
            self._for_replies = None

    @contextmanager
    def troubling_paths(self, pattern: str, trouble: Trouble) -> Iterator[None]:
        """Interfere with every GET whose path, without its query, is of a form."""
        form = re.compile(pattern)
        self._for_paths[form] = trouble
        try:
            yield
        finally:
            del self._for_paths[form]

    @contextmanager
    def delaying(self, seconds: float) -> Iterator[None]:
        """Answer every GET so much later."""
        self._delay_s = seconds
        try:
            yield
        finally:
            self._delay_s = 0.0

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Deal with one request."""
        exchange = Exchange(handler, self._ask_flink, None)
        asked = _REQUIREMENTS.fullmatch(exchange.path) if exchange.method == "PUT" else None
        if asked is not None:
            exchange.put = self._note(asked[1], exchange.body)
        elif exchange.method == "GET":
            time.sleep(self._delay_s)
        trouble = self._choose(asked[1] if asked is not None else None, exchange)
        if exchange.put is not None and trouble is not hand_on:
            exchange.put.trouble = trouble.__name__
        try:
            trouble(exchange)
        except urllib3.exceptions.HTTPError:
            exchange.close()  # Flink does not reply, so neither do we
        finally:
            if exchange.put is not None:
                exchange.put.answered_s = time.time()

    def _choose(self, job_id: str | None, exchange: Exchange) -> Trouble:
        path = exchange.path.partition("?")[0]
        of_path = [one for form, one in list(self._for_paths.items()) if form.fullmatch(path)]
        with self._lock:
            if job_id is not None:
                result = self._for_puts.pop(job_id, hand_on)
            elif of_path and exchange.method == "GET":
                result = of_path[0]
            else:
                troubled = self._for_replies
                result = troubled[0] if troubled is not None and troubled[2].random() < troubled[1] else hand_on
            self._hits += result is not hand_on
            return result

    def _note(self, job_id: str, body: bytes) -> Put:
        bounds = {vertex: int(one["parallelism"]["upperBound"]) for vertex, one in json.loads(body).items()}
        put = Put(job_id, bounds, time.time())
        with self._lock:
            self.puts.append(put)
        return put

    def _ask_flink(self, exchange: Exchange) -> Reply:
        headers = {"Content-Type": "application/json"} if exchange.body else {}
        url = f"{self._flink}{exchange.path}"
        result = self._pool.request(exchange.method, url, body=exchange.body or None, headers=headers, redirect=False)
        return Reply(result.status, result.data, result.headers.get("Content-Type", "application/json"))


@contextmanager
def serving(upstream: str) -> Iterator[Proxy]:
    """Run a proxy before Flink."""
    proxy = Proxy(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with suppress(OSError):  # the controller has gone
                proxy.handle(self)

        do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - of http.server
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a controller that was killed

    listener = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    proxy.url = f"http://127.0.0.1:{listener.server_address[1]}"
    try:
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
