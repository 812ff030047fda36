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
    """What a process and its children took.

    Attributes:
        seconds: by the clock.
        peak_bytes: the highest sum of their resident memory.
        cpu_s: processor seconds of all of them, up to ``SAMPLE_EVERY_S`` before the end.
        samples: epoch second, processor seconds so far and resident bytes, every ``SAMPLE_EVERY_S``.
    """

    seconds: float
    peak_bytes: int
    cpu_s: float
    samples: Sequence[tuple[float, float, int]] = ()


def tree_bytes(process: psutil.Process) -> int:
    """Return the proportional (shared pages counted once) memory of a process and its children."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:
            continue  # it ended between the listing and the question
    return total


def tree_cpu_s(process: psutil.Process) -> float:
    """Return the processor seconds so far of a process, its children, and theirs that have ended."""
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        try:
            times = member.cpu_times()
        except psutil.Error:
            continue  # it ended between the listing and the question: its parent has its seconds from now on
        total += times.user + times.system + times.children_user + times.children_system
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
        samples: list[tuple[float, float, int]] = []
        watcher = threading.Thread(target=_watch, args=(child, samples), daemon=True)
        watcher.start()
        code = child.wait()
        seconds = time.monotonic() - started
        watcher.join()
    if code != 0:
        raise CommandFailedError(f"{' '.join(command)} exited with {code}:\n{log.read_text(errors='replace')[-2000:]}")
    cpu_s, peak = (max((one[place] for one in samples), default=0) for place in (1, 2))
    return Usage(seconds, int(peak), cpu_s, samples)


def _watch(child: subprocess.Popen[bytes], samples: list[tuple[float, float, int]]) -> None:
    try:
        process = psutil.Process(child.pid)
        while child.poll() is None:
            samples.append((time.time(), tree_cpu_s(process), tree_bytes(process)))
            time.sleep(SAMPLE_EVERY_S)
    except psutil.NoSuchProcess:
        return
