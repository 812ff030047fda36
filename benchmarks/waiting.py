"""Waiting for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NotReachedError(RuntimeError):
    """A condition was not met in time; the message names it."""


def wait_until(condition: Callable[[], T | None], within_s: float, what: str, every_s: float = 0.1) -> T:
    """Return what a condition says as soon as it is true.

    Raises:
        NotReachedError: it was not within the time.
    """
    deadline = time.monotonic() + within_s
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise NotReachedError(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)
    return result
