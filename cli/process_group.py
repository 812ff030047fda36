"""Ending processes: a child together with all that it has started, and this one on SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

PATIENCE_S = 15.0


def end_group(child: subprocess.Popen[str]) -> None:
    """Ask the group of a child to end, and make it after 15 s; the child must lead a session of its own."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=PATIENCE_S)
            return


def exit_on_sigterm() -> None:
    """Have SIGTERM unwind this process as Ctrl-C does, so that what it started is ended; the exit code is 143."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
