"""Running a stage as the whole process that users run, with its time and its peak memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_EVERY_S = 0.5


class CommandFailedError(RuntimeError):
    """The measured command failed; the message holds the end of what it printed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children took: wall seconds and the highest sum of their resident memory."""

    seconds: float
    peak_bytes: int


def tree_bytes(process: psutil.Process) -> int:
    """Return the proportional (shared pages counted once) memory of a process and its children."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:
            continue  # it ended between the listing and the question
    return total


def measure(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Usage:
    """Run a command to its end.

    Raises:
        CommandFailedError: it exited with another code than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        started = time.monotonic()
        child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT)
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(child, peak), daemon=True)
        watcher.start()
        code = child.wait()
        seconds = time.monotonic() - started
        watcher.join()
    if code != 0:
        raise CommandFailedError(f"{' '.join(command)} exited with {code}:\n{log.read_text(errors='replace')[-2000:]}")
    return Usage(seconds, peak[0])


def _watch(child: subprocess.Popen[bytes], peak: list[int]) -> None:
    try:
        process = psutil.Process(child.pid)
        while child.poll() is None:
            peak[0] = max(peak[0], tree_bytes(process))
            time.sleep(SAMPLE_EVERY_S)
    except psutil.NoSuchProcess:
        return
