"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take Ctrl-C: a shell's background process ignores it, and so would every program that a test interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
