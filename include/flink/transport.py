"""HTTP to one Flink JobManager: bounded retries, and errors that name the cluster and what to do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests


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


class Transport:
    """Requests to one REST address.

    Only GET is repeated after a connection error: a PUT or POST whose reply was lost may have been carried out, and
    whether to send it again is for the caller to decide after a look at the job.

    Args:
        rest_url: such as ``http://127.0.0.1:8081``.
        connect_timeout_s, read_timeout_s: limits of one attempt.
        retries: how many times a GET is tried again.
        sleep: waits between attempts (0.2 s, doubling).
    """

    def __init__(
        self,
        rest_url: str,
        *,
        connect_timeout_s: float = 2.0,
        read_timeout_s: float = 10.0,
        retries: int = 2,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rest_url = rest_url.rstrip("/")
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._retries = retries
        self._sleep = sleep
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the environment must not stand between us and the cluster

    def get(self, path: str) -> Reply:
        """GET, repeated a bounded number of times while no reply comes.

        Raises:
            FlinkUnreachable: no attempt was answered.
        """
        cause = ""
        for attempt in range(self._retries + 1):
            if attempt:
                self._sleep(0.2 * 2.0 ** (attempt - 1))
            try:
                return self._send("GET", path)
            except requests.RequestException as error:
                cause = type(error).__name__
        raise FlinkUnreachable(self.rest_url, self._retries + 1, cause)

    def get_json(self, path: str) -> Any:
        """GET and parse.

        Raises:
            FlinkUnreachable: no reply.
            FlinkRefused: the reply is an error or no JSON.
        """
        return self._parse("GET", self.get(path))

    def send_json(self, method: str, path: str, *, body: object = None, files: Any = None) -> Any:
        """PUT, POST, PATCH or DELETE once and parse the reply.

        Raises:
            FlinkUnreachable: no reply; the request may have been carried out nevertheless.
            FlinkRefused: the reply is an error.
        """
        try:
            reply = self._send(method, path, body=body, files=files)
        except requests.RequestException as error:
            raise FlinkUnreachable(self.rest_url, 1, type(error).__name__) from error
        return self._parse(method, reply)

    def close(self) -> None:
        """Close the pooled connections."""
        self._session.close()

    def _send(self, method: str, path: str, *, body: object = None, files: Any = None) -> Reply:
        url = f"{self.rest_url}{path}"
        found = self._session.request(method, url, json=body, files=files, timeout=self._timeouts)
        found.encoding = "utf-8"  # Flink names no charset; requests would guess
        return Reply(path, found.status_code, found.text)

    @staticmethod
    def _parse(method: str, reply: Reply) -> Any:
        try:
            payload = json.loads(reply.body) if reply.body else {}
        except ValueError as error:
            raise FlinkRefused(method, reply.path, reply.status, f"not JSON: {reply.body[:120]!r}") from error
        if not reply.ok:
            raise FlinkRefused(method, reply.path, reply.status, first_error(payload, reply.body[:300]))
        return payload
