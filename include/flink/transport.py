"""HTTP to one Flink JobManager: TLS, authentication, bounded retries, sizes and times; errors name what to do."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, ProtocolError, ProxyError, SSLError
from urllib3.util import Retry, Timeout

from include.flink.credentials import Credentials, SecretError, hide_secrets
from include.flink.deadline import (
    CURRENT_CALL,
    POOLS,
    Call,
    CallStoppedError,
    DeadlineExceededError,
    SendingForbiddenError,
)
from include.flink.faults import (
    CertificateRefusedError,
    FlinkRefusedError,
    FlinkUnreachableError,
    RedirectedError,
    ReplyTooLargeError,
    ReplyTooSlowError,
    RequestStoppedError,
    SecretUnreadableError,
    SentTooLateError,
    first_error,
)
from include.settings.connection import Connection

MIB = 2**20
_CHUNK_BYTES = 65_536
_CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # a connection that broke, under TLS
_NO_CONNECTION = Connection()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as received.

    Attributes:
        path: path and query as requested.
        status: HTTP status.
        body: the text, unchanged.
    """

    path: str
    status: int
    body: str

    @property
    def ok(self) -> bool:
        """Whether Flink accepted the request."""
        return 200 <= self.status < 300


class Transport:
    """Requests to one REST address.

    Only GET is repeated after a connection error: a PUT or POST whose reply was lost may have been carried out, and
    whether to send it again is for the caller to decide after a look at the job.  A redirect is never followed.

    Args:
        rest_url: such as ``http://127.0.0.1:8081``.
        cluster: its name, for messages.
        connection: TLS, authentication and proxy.
        connect_timeout_s, read_timeout_s: limits of one attempt: for the connection, and from one byte to the next.
        total_timeout_s: limit for the whole reply of one attempt.
        largest_bytes: limit of a reply's size.
        retries: how many times a GET is tried again.
        backoff_factor_s: urllib3's: the second attempt follows at once, the third after twice this long, then doubling.
        connections: how many are kept open.
        headers: sent with every request; no secrets (see ``connection``).
        may_change: asked right before the bytes of anything but a GET leave; None: they always may.
    """

    def __init__(
        self,
        rest_url: str,
        *,
        cluster: str | None = None,
        connection: Connection = _NO_CONNECTION,
        connect_timeout_s: float = 2.0,
        read_timeout_s: float = 10.0,
        total_timeout_s: float = 60.0,
        largest_bytes: int = 64 * MIB,
        retries: int = 2,
        backoff_factor_s: float = 0.2,
        connections: int = 10,
        headers: Mapping[str, str] | None = None,
        may_change: Callable[[], bool] | None = None,
    ) -> None:
        self.rest_url = rest_url.rstrip("/")
        self.place = f"Flink at {self.rest_url}" if cluster is None else f"cluster {cluster} ({self.rest_url})"
        self._connection = connection
        self._credentials = Credentials(connection)
        self._timeout = Timeout(connect=connect_timeout_s, read=read_timeout_s)
        self._total_timeout_s, self._largest_bytes = total_timeout_s, largest_bytes
        self._retries = Retry(retries, backoff_factor=backoff_factor_s, respect_retry_after_header=False)
        self._connections = connections
        self._headers = dict(headers or {})
        self._may_change = may_change
        self._pool: tuple[dict[str, str], urllib3.PoolManager] | None = None
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self._is_stopped = False

    def get(self, path: str) -> Reply:
        """GET, repeated a bounded number of times while no reply comes.

        Raises:
            FlinkUnreachableError: no attempt was answered within the limits; a subclass for each other reason.
            RedirectedError: the reply is a redirect.
        """
        retries = self._retries
        while True:
            try:
                return self._send("GET", path)
            except HTTPError as error:
                try:
                    retries = retries.increment("GET", path, error=error)
                except HTTPError:
                    raise self._unreachable(error, int(self._retries.total or 0) + 1) from None
            retries.sleep()

    def get_json(self, path: str) -> Any:
        """GET and parse.

        Raises:
            FlinkUnreachableError: no reply.
            FlinkRefusedError: the reply is an error or no JSON.
        """
        return self._parse("GET", self.get(path))

    def send_json(self, method: str, path: str, **content: Any) -> Any:
        """PUT, POST, PATCH or DELETE once and parse the reply.

        ``content`` is urllib3's ``json`` for a body, or ``fields`` for a form with files.

        Raises:
            FlinkUnreachableError: no reply; the request may have been carried out nevertheless.
            FlinkRefusedError: the reply is an error.
            SentTooLateError: nothing was sent.
        """
        try:
            reply = self._send(method, path, **content)
        except HTTPError as error:
            raise self._unreachable(error, 1) from None
        return self._parse(method, reply)

    def stop(self) -> None:
        """Give up the requests under way, and refuse further ones; for another thread than theirs."""
        self._is_stopped = True
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        if self._pool is not None:
            self._pool[1].clear()

    def _send(self, method: str, path: str, **content: Any) -> Reply:
        if self._is_stopped:
            raise RequestStoppedError(self.place, path)
        pool = self._guard(self._open_pool)
        secret = self._guard(self._credentials.headers)
        headers = {**self._headers, **({"Content-Type": "application/json"} if "json" in content else {}), **secret}
        call = Call(self._total_timeout_s, None if method == "GET" else self._may_change)
        with self._lock:
            self._calls.add(call)
        token = CURRENT_CALL.set(call)
        try:
            result = pool.request(
                method,
                f"{self.rest_url}{path}",
                headers=headers,
                retries=False,
                redirect=False,
                preload_content=False,
                **content,
            )
            try:
                return self._read(method, path, result, secret)
            except BaseException:
                result.close()  # what is left of the reply must not be taken for the next one's
                raise
        except DeadlineExceededError:
            raise ReplyTooSlowError(self.place, path, self._total_timeout_s) from None
        except CallStoppedError:
            raise RequestStoppedError(self.place, path) from None
        except SendingForbiddenError:
            raise SentTooLateError(self.place, path) from None
        except SSLError as error:
            if isinstance(error.args[0] if error.args else None, _CUT_OFF):
                raise
            raise self._certificate_fault(error) from None
        except (HTTPError, OSError) as error:
            if self._is_stopped:
                raise RequestStoppedError(self.place, path) from None
            if isinstance(error, HTTPError):
                raise
            raise ProtocolError(type(error).__name__) from None
        finally:
            CURRENT_CALL.reset(token)
            with self._lock:
                self._calls.discard(call)

    def _read(self, method: str, path: str, result: urllib3.BaseHTTPResponse, secret: Mapping[str, str]) -> Reply:
        if 300 <= result.status < 400:
            target = hide_secrets(_without_query(result.headers.get("Location", "")), secret)
            raise RedirectedError(self.place, method, path, result.status, target)
        parts, size = [], 0
        while part := result.read(_CHUNK_BYTES):
            parts.append(part)
            size += len(part)
            if size > self._largest_bytes:
                raise ReplyTooLargeError(self.place, path, self._largest_bytes)
        result.release_conn()
        text = b"".join(parts).decode("utf-8", errors="replace")  # Flink names no charset
        return Reply(path, result.status, hide_secrets(text, secret))

    def _open_pool(self) -> urllib3.PoolManager:
        """Return the connections; new ones when the proxy's login has changed."""
        proxy_headers = self._credentials.proxy_headers()
        with self._lock:
            if self._pool is not None and self._pool[0] == proxy_headers:
                return self._pool[1]
            options: dict[str, Any] = {"maxsize": self._connections, "timeout": self._timeout}
            if self.rest_url.startswith("https:"):
                options["ssl_context"] = self._tls_context()
            # Only a proxy that the settings name: one of the environment would stand between us and the cluster.
            proxy = self._connection.proxy
            pool = (
                urllib3.PoolManager(**options)
                if proxy is None
                else urllib3.ProxyManager(proxy, proxy_headers=proxy_headers, **options)
            )
            pool.pool_classes_by_scheme = POOLS
            self._pool = (proxy_headers, pool)
            return pool

    def _tls_context(self) -> ssl.SSLContext:
        wanted = self._connection
        try:
            context = ssl.create_default_context(cafile=wanted.ca_file)
        except OSError as error:
            raise SecretError(f"ca_file {wanted.ca_file} cannot be used ({_reason(error)}); write a PEM file") from None
        if wanted.client_cert_file is not None:
            # Without a password OpenSSL would ask for one on the terminal.
            password = self._credentials.key_password() or ""
            try:
                context.load_cert_chain(wanted.client_cert_file, wanted.client_key_file, password)
            except OSError as error:
                files = wanted.client_key_file or wanted.client_cert_file
                raise SecretError(
                    f"client_cert_file {wanted.client_cert_file} with the key of {files} cannot be used "
                    f"({_reason(error)}); write PEM files that belong together, and client_key_password if need be"
                ) from None
        return context

    def _guard(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except SecretError as error:
            raise SecretUnreadableError(self.place, str(error)) from None

    def _certificate_fault(self, error: SSLError) -> FlinkUnreachableError:
        cause = error.args[0] if error.args else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefusedError(self.place, cause.verify_message)
        return CertificateRefusedError(
            self.place, _reason(cause) if isinstance(cause, OSError) else type(cause).__name__
        )

    def _unreachable(self, error: HTTPError, attempts: int) -> FlinkUnreachableError:
        return FlinkUnreachableError(self.place, attempts, _cause(error))

    def _parse(self, method: str, reply: Reply) -> Any:
        try:
            payload = json.loads(reply.body) if reply.body else {}
        except (ValueError, RecursionError) as error:
            message = f"not JSON: {reply.body[:120]!r}"
            raise FlinkRefusedError(self.place, method, reply.path, reply.status, message) from error
        if not reply.ok:
            message = first_error(payload, reply.body[:300])
            raise FlinkRefusedError(self.place, method, reply.path, reply.status, message)
        return payload


def _cause(error: HTTPError) -> str:
    """Return the name of what kept the last attempt from being answered."""
    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(reason, ProxyError):
        refused = re.search(r"Tunnel connection failed: (\d{3})", str(reason.original_error))
        reported = (
            f"tunnel refused with {refused[1]}, see proxy_basic" if refused else type(reason.original_error).__name__
        )
        return f"proxy: {reported}"
    return type(reason).__name__


def _reason(error: OSError) -> str:
    """Return OpenSSL's or the system's reason, which holds no secret."""
    return str(getattr(error, "reason", None) or error.strerror or type(error).__name__)


def _without_query(location: str) -> str:
    """Return where a redirect leads without login and query, which may hold secrets."""
    try:
        result = urlsplit(location)
        host = f"{result.hostname}:{result.port}" if result.port else str(result.hostname or "")
    except ValueError:
        return "an address that is no URL"
    shown = f"{result.scheme}://{host}{result.path}" if host else result.path
    return "".join(letter if letter.isprintable() else "?" for letter in shown[:200]) or "nowhere"
