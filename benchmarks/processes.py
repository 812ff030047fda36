"""Running a stage as the whole process that users run, with its time and its peak memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
        cpu_s: processor seconds of all of them, as they were when each was looked at last: too few by at most
            ``SAMPLE_EVERY_S`` of each process, and by those that lived shorter.
    """

    seconds: float
    peak_bytes: int
    cpu_s: float = 0.0


def tree_bytes(process: psutil.Process) -> int:
    """Return the proportional (shared pages counted once) memory of a process and its children."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_full_info().pss
        except psutil.Error:
            continue  # it ended between the listing and the question
    return total


def note_cpu(process: psutil.Process, cpu_s: dict[tuple[int, float], float]) -> None:
    """Note the processor seconds of a process and its children, by what tells processes apart."""
    for member in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            times = member.cpu_times()
            cpu_s[member.pid, member.create_time()] = times.user + times.system


def measure(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Usage:
    """Run a command to its end.

    Raises:
        CommandFailedError: it exited with another code than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        started = time.monotonic()
        child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT)
        peak, cpu_s = [0], dict[tuple[int, float], float]()
        watcher = threading.Thread(target=_watch, args=(child, peak, cpu_s), daemon=True)
        watcher.start()
        code = child.wait()
        seconds = time.monotonic() - started
        watcher.join()
    if code != 0:
        raise CommandFailedError(f"{' '.join(command)} exited with {code}:\n{log.read_text(errors='replace')[-2000:]}")
    return Usage(seconds, peak[0], sum(cpu_s.values()))


def _watch(child: subprocess.Popen[bytes], peak: list[int], cpu_s: dict[tuple[int, float], float]) -> None:
    try:
        process = psutil.Process(child.pid)
        while child.poll() is None:
            note_cpu(process, cpu_s)
            peak[0] = max(peak[0], tree_bytes(process))
            time.sleep(SAMPLE_EVERY_S)
    except psutil.NoSuchProcess:
        return
