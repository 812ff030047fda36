"""What the proxy can do to a request and its reply."""

from __future__ import annotations

import time

from benchmarks.chaos.proxy import Exchange, Reply, Trouble

_HTML = Reply(200, b"<html><title>Please log in</title><body>session expired</body></html>", "text/html")
_ERROR = Reply(500, b'{"errors":["Internal server error."]}')
_BUSY = Reply(503, b'{"errors":["Service temporarily unavailable."]}')
_GARBAGE = Reply(200, bytes(range(256)) * 4, "application/octet-stream")
_REDIRECT = Reply(302, b"")
_ACCEPTED = Reply(200, b"{}")


def drop(exchange: Exchange) -> None:
    """Close the connection; Flink hears nothing."""
    exchange.close()


def reply_500(exchange: Exchange) -> None:
    """Reply that the server has failed; Flink hears nothing."""
    exchange.answer(_ERROR)


def reply_503(exchange: Exchange) -> None:
    """Reply that nobody can answer now; Flink hears nothing."""
    exchange.answer(_BUSY)


def reply_html(exchange: Exchange) -> None:
    """Reply with a login page; Flink hears nothing."""
    exchange.answer(_HTML)


def reply_garbage(exchange: Exchange) -> None:
    """Reply with bytes that mean nothing; Flink hears nothing."""
    exchange.answer(_GARBAGE)


def redirect(exchange: Exchange) -> None:
    """Point elsewhere; Flink hears nothing."""
    exchange.answer(_REDIRECT, Location="http://127.0.0.1:9/login")


def fake_acceptance(exchange: Exchange) -> None:
    """Reply that all is well; Flink hears nothing."""
    exchange.answer(_ACCEPTED)


def lose_reply(exchange: Exchange) -> None:
    """Hand the request on, and close the connection without a reply."""
    exchange.forward()
    exchange.close()


def cut_reply(exchange: Exchange) -> None:
    """Hand the request on, and end the reply in its middle."""
    exchange.answer_half(exchange.forward())


def accept_with_500(exchange: Exchange) -> None:
    """Hand the request on, and reply that the server has failed."""
    exchange.forward()
    exchange.answer(_ERROR)


def duplicate(exchange: Exchange) -> None:
    """Hand the request on twice, one soon after the other."""
    exchange.forward()
    time.sleep(2.0)
    exchange.answer(exchange.forward())


def delay_by(seconds: float) -> Trouble:
    """Return what hands requests on after some seconds."""

    def delay(exchange: Exchange) -> None:
        time.sleep(seconds)
        exchange.answer(exchange.forward())

    return delay
