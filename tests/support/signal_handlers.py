"""Handlers of signals that a command sets in the process of the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restoring_handlers() -> Iterator[None]:
    """Give the test runner its handlers back at the end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
