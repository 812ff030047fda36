"""How a command ends on SIGTERM."""

from __future__ import annotations

import signal
import sys


def exit_on_sigterm() -> None:
    """Have SIGTERM unwind this process as Ctrl-C does, so that what it started is ended; the exit code is 143."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
