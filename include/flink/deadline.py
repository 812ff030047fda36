"""HTTP connections whose replies have a deadline, whatever the pace of their bytes, and can be given up from outside.

A socket's timeout counts from one byte to the next, so a server that sends a byte every few seconds could hold a thread
for ever.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection


class DeadlineExceededError(Exception):
    """The reply was not complete in time; none of urllib3's own, so that it is not tried again."""


class CallStoppedError(Exception):
    """The call was given up from outside."""


class SendingForbiddenError(Exception):
    """The request may not be sent any more; what was sent of it is no whole request."""


class Call:
    """One request under way, its reply to be complete within ``limit_s``; ``may_send`` is asked before bytes leave."""

    def __init__(self, limit_s: float, may_send: Callable[[], bool] | None = None) -> None:
        self._may_send = may_send
        self._deadline = time.monotonic() + limit_s
        self._socket: socket.socket | None = None
        self._is_stopped = False

    def use(self, connected: socket.socket) -> None:
        """Remember the socket that the reply comes from."""
        self._socket = connected
        self.check()

    def left_s(self) -> float:
        """Return the seconds left.

        Raises:
            CallStoppedError: it was given up.
            DeadlineExceededError: there are none.
        """
        self.check()
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise DeadlineExceededError
        return remaining_s

    def check(self) -> None:
        """Go on unless the call was given up.

        Raises:
            CallStoppedError: it was.
        """
        if self._is_stopped:
            raise CallStoppedError

    def check_send(self) -> None:
        """Go on if bytes of the request may leave.

        Raises:
            SendingForbiddenError: they may not.
        """
        if self._may_send is not None and not self._may_send():
            raise SendingForbiddenError

    def stop(self) -> None:
        """Give the call up: whoever waits for its reply wakes at once."""
        self._is_stopped = True
        if self._socket is not None:
            with suppress(OSError):  # it may be closed already
                # Not SSLSocket's own, which would take its state from under the thread that reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


CURRENT_CALL: ContextVar[Call | None] = ContextVar("CURRENT_CALL", default=None)


class _TimedReader(io.RawIOBase):
    """Bytes of a socket, each wait no longer than the call has left."""

    def __init__(self, connected: socket.socket, call: Call) -> None:
        self._raw: Any = connected.makefile("rb", buffering=0)
        self._socket, self._call = connected, call
        self._longest_s = connected.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining_s = self._call.left_s()
        self._socket.settimeout(remaining_s if self._longest_s is None else min(remaining_s, self._longest_s))
        try:
            count: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            self._call.left_s()
            raise
        if not count:
            self._call.check()  # a socket that was shut down looks like the end of the reply
        return count

    def close(self) -> None:
        if not self.closed:
            with suppress(OSError):  # the next request on this connection has its own time
                self._socket.settimeout(self._longest_s)
            self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        call = CURRENT_CALL.get()
        if call is not None:
            self.fp.close()
            call.use(sock)
            self.fp = io.BufferedReader(_TimedReader(sock, call))


def _check_send(connection: HTTPConnection) -> None:
    """Connect first, which may take long, and then ask whether bytes may leave."""
    call = CURRENT_CALL.get()
    if call is None:
        return
    if connection.sock is None:
        connection.connect()
    call.check_send()


class _TimedConnection(HTTPConnection):
    response_class = _TimedResponse

    def send(self, data: Any) -> None:
        _check_send(self)
        super().send(data)


class _TimedTlsConnection(HTTPSConnection):
    response_class = _TimedResponse

    def send(self, data: Any) -> None:
        _check_send(self)
        super().send(data)


class _TimedPool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TimedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


POOLS = {"http": _TimedPool, "https": _TimedTlsPool}
"""For ``PoolManager.pool_classes_by_scheme``."""
