"""HTTP to one Flink JobManager: bounded retries, and errors that name the cluster and what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError
from urllib3.util import Retry, Timeout


class FlinkError(RuntimeError):
    """Something about a Flink cluster that the caller has to know by name."""


class FlinkUnreachable(FlinkError):  # noqa: N818 - reads as what happened
    """No reply came from the cluster's REST address."""

    def __init__(self, rest_url: str, attempts: int, cause: str) -> None:
        super().__init__(
            f"Flink at {rest_url} did not reply ({attempts} attempts: {cause}); check rest_url and the JobManager"
        )
        self.rest_url = rest_url


class FlinkRefused(FlinkError):  # noqa: N818 - reads as what happened
    """Flink replied, and refused; carries Flink's own message."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"Flink refused {method} {path} with {status}: {message}")
        self.status = status
        self.message = message


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


def first_error(payload: object, fallback: str) -> str:
    """Return the first line of Flink's ``{"errors": [...]}`` reply that is not a stack frame's."""
    if isinstance(payload, dict) and payload.get("errors"):
        texts = [text for text in map(str, payload["errors"]) if text.strip()]
        # Flink gives a general sentence first and the stack trace second; the last "Caused by" is the reason.
        causes = [line for text in texts for line in text.splitlines() if line.startswith("Caused by:")]
        headline = texts[0].splitlines()[0] if texts else fallback
        return f"{headline} {causes[-1]}" if causes else headline
    return fallback


def _cause(error: HTTPError) -> str:
    """Return the name of what kept the last attempt from being answered."""
    return type(error.reason if isinstance(error, MaxRetryError) and error.reason else error).__name__


class Transport:
    """Requests to one REST address.

    Only GET is repeated after a connection error: a PUT or POST whose reply was lost may have been carried out, and
    whether to send it again is for the caller to decide after a look at the job.

    Args:
        rest_url: such as ``http://127.0.0.1:8081``.
        connect_timeout_s, read_timeout_s: limits of one attempt.
        retries: how many times a GET is tried again.
        backoff_factor_s: urllib3's: the second attempt follows at once, the third after twice this long, then doubling.
    """

    def __init__(
        self,
        rest_url: str,
        *,
        connect_timeout_s: float = 2.0,
        read_timeout_s: float = 10.0,
        retries: int = 2,
        backoff_factor_s: float = 0.2,
    ) -> None:
        self.rest_url = rest_url.rstrip("/")
        self._retries = Retry(retries, backoff_factor=backoff_factor_s, respect_retry_after_header=False)
        # Unlike requests it reads no proxy from the environment, which would stand between us and the cluster.
        self._pool = urllib3.PoolManager(maxsize=10, timeout=Timeout(connect=connect_timeout_s, read=read_timeout_s))

    def get(self, path: str) -> Reply:
        """GET, repeated a bounded number of times while no reply comes.

        Raises:
            FlinkUnreachable: no attempt was answered.
        """
        try:
            return self._send("GET", path, retries=self._retries)
        except HTTPError as error:
            raise FlinkUnreachable(self.rest_url, int(self._retries.total or 0) + 1, _cause(error)) from error

    def get_json(self, path: str) -> Any:
        """GET and parse.

        Raises:
            FlinkUnreachable: no reply.
            FlinkRefused: the reply is an error or no JSON.
        """
        return self._parse("GET", self.get(path))

    def send_json(self, method: str, path: str, **content: Any) -> Any:
        """PUT, POST, PATCH or DELETE once and parse the reply.

        Args:
            method: the verb.
            path: path and query.
            content: urllib3's ``json`` for a body, or ``fields`` for a form with files.

        Raises:
            FlinkUnreachable: no reply; the request may have been carried out nevertheless.
            FlinkRefused: the reply is an error.
        """
        try:
            reply = self._send(method, path, retries=False, **content)
        except HTTPError as error:
            raise FlinkUnreachable(self.rest_url, 1, _cause(error)) from error
        return self._parse(method, reply)

    def close(self) -> None:
        """Close the pooled connections."""
        self._pool.clear()

    def _send(self, method: str, path: str, *, retries: Retry | bool, **content: Any) -> Reply:
        found = self._pool.request(method, f"{self.rest_url}{path}", retries=retries, **content)
        return Reply(path, found.status, found.data.decode("utf-8", errors="replace"))  # Flink names no charset

    @staticmethod
    def _parse(method: str, reply: Reply) -> Any:
        try:
            payload = json.loads(reply.body) if reply.body else {}
        except ValueError as error:
            raise FlinkRefused(method, reply.path, reply.status, f"not JSON: {reply.body[:120]!r}") from error
        if not reply.ok:
            raise FlinkRefused(method, reply.path, reply.status, first_error(payload, reply.body[:300]))
        return payload
