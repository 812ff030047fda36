"""An S3 server on this machine: moto's, with atomic conditional writes, and faults when asked for.

    python s3_server.py --port 0 --bucket lake --faults 0.05 --seed 1

moto looks whether an object is there and then writes it, so of two threads both may create one object, unlike on S3.
Here one request at a time changes the store. It prints its address when it listens.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

THROTTLED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.'
    b"</Message></Error>"
)
FAILED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>We encountered an internal error.'
    b"</Message></Error>"
)
REFUSED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InvalidAccessKeyId</Code><Message>The AWS Access Key Id you '
    b"provided does not exist in our records.</Message></Error>"
)
Start = Callable[..., Any]


class FaultyStore:
    """The store with what happens in real ones: throttled before, failed or cut off after the request was carried out.

    What is read is cut off after half of it.

    Args:
        store: the WSGI application.
        share: of requests that meet a fault, 0 to 1.
        seed: of which ones.
        is_atomic: False leaves moto as it is.
        key: id of the key that is let in; empty for any.
        ignores_conditions: as a store that knows no If-None-Match and lets a second writer replace the first.
    """

    def __init__(
        self, store: Any, share: float, seed: int, *, is_atomic: bool, ignores_conditions: bool, key: str
    ) -> None:
        self._key = key
        self._store, self._share, self._random = store, share, random.Random(seed)
        self._is_atomic, self._ignores_conditions = is_atomic, ignores_conditions
        self._changes, self._draws = threading.Lock(), threading.Lock()
        self.counts: Counter[str] = Counter()
        self.requests: list[str] = []

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] in {"/_counts", "/_requests"}:
            start("200 OK", [("Content-Type", "text/plain")])
            return [self._report(environ["PATH_INFO"]).encode()]
        if self._ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if self._key and f"Credential={self._key}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            return _answer(start, "403 Forbidden", REFUSED)
        with self._draws:
            fault = self._random.choice(("throttled", "failed", "cut")) if self._random.random() < self._share else ""
            self.counts[environ["REQUEST_METHOD"]] += 1
            self.counts[fault or "served"] += 1
            of = environ["PATH_INFO"] if not environ.get("QUERY_STRING") else f"?{environ['QUERY_STRING']}"
            self.requests.append(f"{environ['REQUEST_METHOD']} {of}")
        if fault == "throttled":
            return _answer(start, "503 Slow Down", THROTTLED)
        if fault == "cut" and environ["REQUEST_METHOD"] == "GET":
            return self._answer_half(environ, start)
        answer = self._carry_out(environ, start if not fault else _ignore)
        if fault == "failed":
            return _answer(start, "500 Internal Server Error", FAILED)
        if fault == "cut":
            _cut(environ)
        return answer

    def _report(self, what: str) -> str:
        """Return how many requests there were of each kind and fault, or each one since that was asked last."""
        if what == "/_counts":
            return " ".join(f"{name}={count}" for name, count in sorted(self.counts.items()))
        reported, self.requests = self.requests, []
        return "\n".join(reported)

    def _answer_half(self, environ: dict[str, Any], start: Start) -> Iterator[bytes]:
        body = b"".join(self._store(environ, start))
        yield body[: len(body) // 2]
        _cut(environ)

    def _carry_out(self, environ: dict[str, Any], start: Start) -> list[bytes]:
        if self._is_atomic and environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            with self._changes:
                return list(self._store(environ, start))
        return list(self._store(environ, start))


class LostAnswers:
    """The store with an answer that is lost at the moment that a test chooses.

    Orders are requests: ``/_lose?TEXT``, to carry out the next PUT whose path has the text, and hold back its answer;
    ``/_written``, answered once that was carried out; ``/_answer``, to answer it with an error.
    """

    def __init__(self, store: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> None:
        self._store, self._text, self._lock = store, "", threading.Lock()
        self._is_written, self._may_answer = threading.Event(), threading.Event()

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/_lose":
            self._is_written.clear()
            self._may_answer.clear()
            self._text = unquote(environ["QUERY_STRING"])
        elif path == "/_written":
            if not self._is_written.wait(60):
                return _answer(start, "504 Gateway Timeout", b"")
        elif path == "/_answer":
            self._may_answer.set()
        elif not self._is_chosen(environ):
            return self._store(environ, start)
        else:
            list(self._store(environ, _ignore))
            self._is_written.set()
            self._may_answer.wait()
            return _answer(start, "500 Internal Server Error", FAILED)
        return _answer(start, "200 OK", b"")

    def _is_chosen(self, environ: dict[str, Any]) -> bool:
        with self._lock:
            if environ["REQUEST_METHOD"] != "PUT" or not self._text or self._text not in environ["PATH_INFO"]:
                return False
            self._text = ""
            return True


def _answer(start: Start, status: str, body: bytes) -> list[bytes]:
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _cut(environ: dict[str, Any]) -> None:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionError("cut")


def _ignore(status: str, headers: object, error: object = None) -> Callable[[bytes], None]:
    return lambda data: None


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *args: Any, **options: Any) -> None:
        pass

    def log(self, *args: Any, **options: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bucket", default="lake")
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--as-moto-is", action="store_true", help="without the lock")
    parser.add_argument("--switches-often", action="store_true", help="threads take turns as often as they can")
    parser.add_argument("--ignores-conditions", action="store_true")
    parser.add_argument("--key", default="", help="id of the key that is let in; any without it")
    options = parser.parse_args()
    if options.switches_often:
        sys.setswitchinterval(1e-6)
    store = DomainDispatcherApplication(create_backend_app)
    application = FaultyStore(
        store,
        options.faults,
        options.seed,
        is_atomic=not options.as_moto_is,
        ignores_conditions=options.ignores_conditions,
        key=options.key,
    )
    server = make_server(
        "127.0.0.1",
        options.port,
        LostAnswers(application),
        threaded=True,
        request_handler=_Handler,
    )
    from moto.s3.models import s3_backends

    s3_backends["123456789012"]["aws"].create_bucket(options.bucket, "us-east-1")
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
