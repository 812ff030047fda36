"""Waiting for a condition, for a process to end, for a free port: what tests of processes share."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

T = TypeVar("T")


def wait_until(condition: Callable[[], T], within_s: float = 60.0, every_s: float = 0.2) -> T:
    """Return what the condition says as soon as it is true, or at last what it says when the time is over."""
    deadline = time.monotonic() + within_s
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return result


def is_running(pid: int) -> bool:
    """Whether a process has not ended; one that has ended and was not collected yet does not run."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
