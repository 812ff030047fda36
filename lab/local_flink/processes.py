"""Child processes that never outlive the program that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    # Runs in the child before exec: if this program is killed outright (SIGKILL), the kernel ends the child too.
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start_process(command: Sequence[str], output: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own (a Ctrl-C in the terminal does not reach it), output appended to a file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as sink:
        return subprocess.Popen(
            command,
            stdout=sink,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one prctl call, and the child execs at once
        )


def end_process(process: subprocess.Popen[bytes], *, grace_s: float = 5.0) -> None:
    """End the process's group, politely first (unless ``grace_s`` is 0), then for certain; waits until it is gone."""
    for stop, limit_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        if limit_s > 0 and process.poll() is None:
            try:
                os.killpg(process.pid, stop)
                process.wait(limit_s)
            except ProcessLookupError:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                continue
