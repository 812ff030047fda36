"""A webhook on loopback that notes what it is sent; it may refuse, redirect, or send its reply byte by byte."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class WebhookServer:
    """What it was sent, and how it replies.

    Attributes:
        status: of every reply.
        is_slow: whether a reply takes for ever, a byte every tenth of a second.
    """

    url: str = ""
    status: int = 200
    is_slow: bool = False
    texts: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def running_webhook() -> Iterator[WebhookServer]:
    """Run it until the end of the block."""
    state = WebhookServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.paths.append(self.path)
            state.headers.append(dict(self.headers))
            if state.is_slow:
                self._trickle()
                return
            if 200 <= state.status < 300:
                state.texts.append(json.loads(body)["text"])
            self.send_response(state.status)
            if 300 <= state.status < 400:
                self.send_header("Location", f"{state.url}/elsewhere")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def _trickle(self) -> None:
            with suppress(OSError):
                for byte in b"HTTP/1.1 200 OK" + b" " * 10_000:
                    if state.ended.is_set():
                        return
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(0.1)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the signature is Python's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
