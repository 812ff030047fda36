"""Secrets of a cluster's connection, read where the settings say; never kept in settings, logs or messages."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from include.settings.connection import Connection

_LARGEST_BYTES = 65_536  # a header that is larger is refused by every server
_SHORTEST_HIDDEN = 8  # letters
_HEADER_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]+")  # what HTTP can carry: Latin-1 without control characters


class SecretError(Exception):
    """A secret cannot be read; the message names where it should be, and never what is there."""


@dataclass(frozen=True, slots=True)
class Login:
    """Login and password of an Airflow connection, with what its extra holds."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class SecretFiles:
    """Reads ``file:PATH`` and ``env:NAME``; a file is read again when it has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[tuple[int, int, int], str]] = {}

    def read(self, reference: str) -> str:
        """Return the secret on one line, without white space around it.

        Raises:
            SecretError: it is missing, empty, too large, or no text of one line.
        """
        kind, _, place = reference.partition(":")
        secret = (os.environ.get(place, "") if kind == "env" else self._read_file(place)).strip()
        if not secret:
            raise SecretError(f"{reference} holds nothing; put the secret there, or name where it is")
        if not secret.isprintable():
            raise SecretError(f"{reference} must hold one line of text")
        return secret

    def read_value(self, reference: str) -> str:
        """Return a secret that can be the value of a header.

        Raises:
            SecretError: it cannot be read, or HTTP cannot carry it.
        """
        secret = self.read(reference)
        if not _HEADER_VALUE.fullmatch(secret):
            raise SecretError(f"{reference} holds letters that no HTTP header can carry; write ASCII")
        return secret

    def _read_file(self, name: str) -> str:
        path = Path(name)
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
            with self._lock:
                retained = self._kept.get(name)
            if retained is not None and retained[0] == stamp:
                return retained[1]
            with path.open("rb") as opened:
                content = opened.read(_LARGEST_BYTES + 1)
        except OSError as error:
            raise SecretError(f"file:{name} cannot be read ({error.strerror}); check the file and its rights") from None
        if len(content) > _LARGEST_BYTES:
            raise SecretError(f"file:{name} is larger than {_LARGEST_BYTES} bytes, so it is no secret for a header")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
        with self._lock:
            self._kept[name] = (stamp, text)
        return text


def read_airflow_login(connection_id: str) -> Login:
    """Return what an Airflow connection holds; Airflow is imported here alone, as few processes have it.

    Raises:
        SecretError: there is no Airflow, or no such connection, or it cannot be used.
    """
    try:
        from airflow.sdk.bases.hook import BaseHook
    except ImportError:
        raise SecretError(
            f"connection_id = {connection_id!r} needs Airflow, which cannot be imported here; write basic or bearer"
        ) from None
    try:
        connection = BaseHook.get_connection(connection_id)
    except Exception as error:
        # Whatever Airflow raises, its text may hold the connection's URI.
        raise SecretError(
            f"the Airflow connection {connection_id!r} cannot be read ({type(error).__name__}); make it, or write "
            "another connection_id"
        ) from None
    return Login(connection.login or "", connection.password or "", headers_in(connection.extra, connection_id))


class Credentials:
    """The headers that authenticate to a cluster and to its proxy, by its settings, or an Airflow connection's."""

    def __init__(self, connection: Connection, read_login: Callable[[str], Login] = read_airflow_login) -> None:
        self._connection = connection
        self._read_login = read_login
        self._login: Login | None = None
        self._files = SecretFiles()

    def headers(self) -> dict[str, str]:
        """Return the headers of a request, secrets read as they are now.

        Raises:
            SecretError: one of them cannot be read.
        """
        wanted = self._connection
        result = {name: self._files.read_value(place) for name, place in wanted.headers.items()}
        if wanted.basic is not None:
            result["Authorization"] = self._basic(wanted.basic)
        elif wanted.bearer is not None:
            result["Authorization"] = f"Bearer {self._files.read_value(wanted.bearer)}"
        elif wanted.connection_id is not None:
            login = self._airflow(wanted.connection_id)
            result = {**login.headers, **result}
            if login.password:
                basic = _encode_basic(f"{login.user}:{login.password}")
                result["Authorization"] = basic if login.user else f"Bearer {login.password}"
        return result

    def proxy_headers(self) -> dict[str, str]:
        """Return the headers for the proxy.

        Raises:
            SecretError: its login cannot be read.
        """
        place = self._connection.proxy_basic
        return {} if place is None else {"Proxy-Authorization": self._basic(place)}

    def key_password(self) -> str | None:
        """Return the password of the client certificate's key, None without one.

        Raises:
            SecretError: it cannot be read.
        """
        place = self._connection.client_key_password
        return None if place is None else self._files.read(place)

    def _basic(self, place: str) -> str:
        login = self._files.read(place)
        if ":" not in login:
            raise SecretError(f"{place} must hold user:password")
        return _encode_basic(login)

    def _airflow(self, connection_id: str) -> Login:
        if self._login is None:  # asked once: each question goes to Airflow's API server
            self._login = self._read_login(connection_id)
        return self._login


def hide_secrets(text: str, headers: Mapping[str, str]) -> str:
    """Return a text without what the headers of its request have told: some servers send them back in an error page.

    What is shorter than eight letters stays: it would be found in texts that have nothing to do with it.
    """
    for value in headers.values():
        for secret in _forms(value):
            if len(secret) >= _SHORTEST_HIDDEN and secret in text:
                text = text.replace(secret, "[secret]")
    return text


def _forms(value: str) -> Iterator[str]:
    """Yield a header's value, what follows its scheme, and the password in a basic login."""
    yield value
    scheme, _, rest = value.partition(" ")
    if rest and scheme in {"Basic", "Bearer"}:
        yield rest
    if rest and scheme == "Basic":
        yield base64.b64decode(rest).decode("utf-8").partition(":")[2]


def _encode_basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode('utf-8')).decode('ascii')}"


def headers_in(extra: str | None, connection_id: str) -> dict[str, str]:
    """Return the headers that an Airflow connection's extra holds.

    Raises:
        SecretError: it is no JSON object, or its headers are no texts.
    """
    try:
        result = json.loads(extra) if extra else {}
        headers = result.get("headers", {})
        if not all(isinstance(value, str) and _HEADER_VALUE.fullmatch(value) for value in headers.values()):
            raise TypeError
    except (ValueError, TypeError, AttributeError):
        raise SecretError(
            f'the extra of the Airflow connection {connection_id!r} must be {{"headers": {{"X-Api-Key": "..."}}}}'
        ) from None
    return dict(headers)
