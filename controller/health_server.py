"""The controller's port: ``/health`` and ``/metrics``, for reading alone; it is closed unless asked for."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST

from controller.health import ControllerHealth

PATHS = ("/health", "/metrics")
WITHIN_S = 5.0  # for a whole request and its reply, as the probe of our manifests waits
CONNECTIONS_MAX = 8
YOUNG_S = 0.05  # enough for a probe, which has sent its request when it is accepted


class AddressError(ValueError):
    """The address cannot be meant, or cannot be had."""


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:8090`` or ``[::1]:8090``.

    Raises:
        AddressError: one of the two is missing or wrong.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port is None or parts.netloc != text or parts.username is not None:
        raise AddressError(f"{text!r} is no address to listen on: write host:port, 127.0.0.1:8090 say")
    return host, port


@contextmanager
def serve_health(health: ControllerHealth, host: str, port: int) -> Iterator[int]:
    """Answer on a port beside the ticks; gives the port, which the system chooses where it is 0.

    Raises:
        AddressError: the address cannot be had.
    """

    class Server(_Server):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    class Handler(_Handler):
        of_controller = health

    try:
        server = Server((host, port), Handler)
    except OSError as error:
        raise AddressError(f"{host}:{port} cannot be listened on: {error.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(WITHIN_S)


class _Server(ThreadingHTTPServer):
    """A few connections at once; where one more comes, the oldest ends, so that slow clients keep no probe out."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._since_s: dict[socket.socket, float] = {}  # oldest first
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; may wait for a place, and connections that wait with it cost nothing."""
        while not self._free.acquire(timeout=YOUNG_S):
            self._end_older_than(0.0, 1)
        self._since_s[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        if self._since_s.pop(request, None) is not None:
            self._free.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show what went wrong, save for a client that has gone."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def service_actions(self) -> None:
        """End what lasts too long, also where a byte comes now and then."""
        self._end_older_than(WITHIN_S, CONNECTIONS_MAX)

    def _end_older_than(self, age_s: float, most: int) -> None:
        end_s = time.monotonic() - age_s
        for connection in [one for one, since_s in list(self._since_s.items()) if since_s <= end_s][:most]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it


class _Handler(BaseHTTPRequestHandler):
    of_controller: ControllerHealth
    timeout = WITHIN_S
    server_version, sys_version = "tidewise", ""

    def do_GET(self) -> None:
        """Answer."""
        path = urlsplit(self.path).path
        if path == "/health":
            is_well, content = self.of_controller.describe()
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            self._reply(status, "application/json", json.dumps(content).encode() + b"\n")
        elif path == "/metrics":
            self._reply(HTTPStatus.OK, CONTENT_TYPE_LATEST, self.of_controller.metrics())
        else:
            self._reply(HTTPStatus.NOT_FOUND, "text/plain", f"there are {' and '.join(PATHS)}\n".encode())

    def _reply(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing: a probe every ten seconds is no news."""
