"""Ending a process group: a child process together with all that it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

PATIENCE_S = 15.0


def end_group(child: subprocess.Popen[str]) -> None:
    """Ask the group of a child to end, and make it after 15 s; the child must lead a session of its own."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=PATIENCE_S)
            return
