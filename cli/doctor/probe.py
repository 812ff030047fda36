"""Requests of the doctor to an HTTP server: with the time that each took, and the cause named when none is answered."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError
from urllib3.util import Timeout

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """What a remedy calls a server.

    Attributes:
        address: the setting or flag in which its address stands.
        port: what is known of its port.
        process: what has to be up.
    """

    name: str
    address: str
    port: str
    process: str


FLINK = Server("Flink's REST API", "rest_url", "rest.port of Flink, 8081 by default", "the JobManager")
PROMETHEUS = Server("Prometheus", "the url of prometheus", "9090 by default", "the server")


class ProbeError(RuntimeError):
    """No reply came; the message says why, ``remedy`` what to do."""

    def __init__(self, check: str, text: str, remedy: str) -> None:
        super().__init__(text)
        self.check = check
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """A reply.

    Attributes:
        headers: by lower-case name.
        payload: of JSON; None where the body is none.
        at_s: epoch seconds at the middle of the request.
    """

    status: int
    headers: Mapping[str, str]
    payload: Any
    at_s: float

    @property
    def is_ok(self) -> bool:
        """Whether the request was accepted and the reply is JSON."""
        return 200 <= self.status < 300 and self.payload is not None


class Probe:
    """Requests to one server; each path is asked for once.

    ``options`` are those of urllib3's pool. A proxy has an address and headers; None for none, also where the
    environment names one.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        proxy: tuple[str, Mapping[str, str]] | None = None,
        server: Server = FLINK,
    ) -> None:
        self._server = server
        self.url = url.rstrip("/")
        self.latencies_s: list[float] = []
        common: dict[str, Any] = {"retries": False, "timeout": Timeout(TIMEOUT_S), **(options or {})}
        self._pool = (
            urllib3.PoolManager(**common)
            if proxy is None
            else urllib3.ProxyManager(proxy[0], proxy_headers=dict(proxy[1]), **common)
        )
        self._replies: dict[str, ProbeReply] = {}

    def get(self, path: str, *, again: bool = False) -> ProbeReply:
        """GET a path; ``again``: even if it was asked for already.

        Raises:
            ProbeError: no reply came.
        """
        if again or path not in self._replies:
            self._replies[path] = self._ask(path)
        return self._replies[path]

    def get_json(self, path: str, otherwise: Any) -> Any:
        """GET a path and return its JSON; something else where the server refuses.

        Raises:
            ProbeError: no reply came.
        """
        reply = self.get(path)
        return reply.payload if reply.is_ok else otherwise

    def _ask(self, path: str) -> ProbeReply:
        started_s, began = time.time(), time.monotonic()
        try:
            result = self._pool.request("GET", f"{self.url}{path}", redirect=False)
        except HTTPError as problem:
            raise name_cause(self.url, problem, self._server) from problem
        seconds = time.monotonic() - began
        self.latencies_s.append(seconds)
        try:
            payload = json.loads(result.data)
        except ValueError:
            payload = None
        headers = {name.lower(): value for name, value in result.headers.items()}
        return ProbeReply(result.status, headers, payload, started_s + seconds / 2)


def name_cause(url: str, problem: HTTPError, server: Server = FLINK) -> ProbeError:
    """Return why a server did not answer, and what to do."""
    result = urlsplit(url)
    where = f"{result.hostname}:{result.port or (443 if result.scheme == 'https' else 80)}"
    causes = list(_causes(problem))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _name_certificate_fault(where, cause, server)
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            text = f"{where} does not speak TLS as asked for ({cause.reason or cause})"
            return ProbeError(
                "TLS", text, f"is it plain HTTP? Then write http:// in {server.address}; else look at the TLS setup"
            )
        if isinstance(cause, socket.gaierror):
            text = f"the name {result.hostname} is not known here"
            return ProbeError("address", text, f"correct the host in {server.address}")
        if isinstance(cause, ConnectionRefusedError):
            text = f"nothing listens at {where}"
            return ProbeError(
                "address",
                text,
                f"correct host and port ({server.port}), and is {server.process} up?",
            )
    return _name_failure(where, causes, server)


def _name_failure(where: str, causes: list[BaseException], server: Server) -> ProbeError:
    """Name what ended a connection that had been made, or was waited for in vain."""
    if any("407" in str(cause) for cause in causes if isinstance(cause, OSError)):
        text = f"the proxy before {where} wants to know who asks (407)"
        return ProbeError("rights", text, "write proxy_basic in the cluster's connection")
    if any("Timeout" in type(cause).__name__ for cause in causes) or isinstance(causes[-1], TimeoutError):
        text = f"{where} does not answer within {TIMEOUT_S:g} s"
        remedy = f"is there a firewall or a NetworkPolicy between, is {server.process} overloaded?"
        return ProbeError("address", text, remedy)
    text = f"{where} ends the connection without a reply of HTTP ({type(causes[-1]).__name__})"
    remedy = f"is this port {server.name}, and does it want https:// in {server.address}?"
    return ProbeError("address", text, remedy)


def _name_certificate_fault(where: str, cause: ssl.SSLCertVerificationError, server: Server) -> ProbeError:
    """Name what is wrong with a certificate; OpenSSL's code 10: expired, 9: not yet valid, 62: another host's."""
    reasons = {
        10: ("has expired", "renew the server's certificate"),
        9: ("is not valid yet", "is this machine's clock right? Else the certificate's"),
        62: ("is for another host", f"write the name in {server.address} that the certificate is for"),
        64: ("is for another host", f"write the name in {server.address} that the certificate is for"),
        18: ("is signed by itself", "name the CA's file in the cluster's connection settings (ca_file)"),
    }
    unknown = ("is signed by a CA that is not trusted here", "name the CA's file in the cluster's connection (ca_file)")
    text, remedy = reasons.get(cause.verify_code, unknown)
    return ProbeError("TLS", f"the certificate of {where} {text} ({cause.verify_message})", remedy)


def _causes(problem: BaseException) -> list[BaseException]:
    """Return an error and what it stems from."""
    result: list[BaseException] = []
    at: object = problem
    while isinstance(at, BaseException) and at not in result:
        result.append(at)
        inner = at.reason if isinstance(at, MaxRetryError) else None
        at = inner or at.__cause__ or at.__context__ or next((a for a in at.args if isinstance(a, BaseException)), None)
    return result
