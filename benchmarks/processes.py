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


@dataclass(slots=True)
class _Seconds:
    """Of a process as it was read last: its own, those of children that it waited for, those of ended ones below it."""

    parent: psutil.Process | None
    own: float = 0.0
    waited: float = 0.0
    ended: float = 0.0

    @property
    def total(self) -> float:
        """A child that ended is in both sums where its parent waited for it: the larger of them counts."""
        return self.own + max(self.waited, self.ended)


class TreeSeconds:
    """Processor seconds of a process and of all that come from it, ended ones too: a sum that never falls.

    A process retains the seconds that it was last read with when it ends, and is followed when its parent has ended
    before it. Children that came and went between two samples, and what one took after its last sample, are in the
    seconds of a parent that waited for them. Nothing is counted twice. Missed may be what no parent waited for of
    these two, and a child that lost its parent before a sample.
    """

    def __init__(self, root: psutil.Process) -> None:
        self._members = {root: _Seconds(None)}
        self._so_far_s = 0.0

    def sample_s(self) -> float:
        """Return the seconds so far."""
        self._add_new()
        for process, seconds in list(self._members.items()):  # parents first: a child is not in both sums
            try:
                times = process.cpu_times()
                if not process.is_running():
                    raise psutil.NoSuchProcess(process.pid)
                seconds.own, seconds.waited = times.user + times.system, times.children_user + times.children_system
            except psutil.Error:
                self._end(process, seconds)
        total_s = sum(seconds.total for seconds in self._members.values())
        self._so_far_s = max(self._so_far_s, total_s)
        return self._so_far_s

    def _add_new(self) -> None:
        listed: set[psutil.Process] = set()
        for top in list(self._members):
            if top in listed:
                continue
            with suppress(psutil.Error):
                for child in top.children(recursive=True):  # parents first
                    listed.add(child)
                    if child not in self._members:
                        by_pid = {process.pid: process for process in self._members}
                        self._members[child] = _Seconds(by_pid.get(child.ppid(), top))

    def _end(self, process: psutil.Process, seconds: _Seconds) -> None:
        """Its seconds, and its children, are its parent's from now on; the first process retains its own."""
        if seconds.parent is None:
            return
        del self._members[process]
        self._members[seconds.parent].ended += seconds.total
        for child in self._members.values():
            if child.parent == process:
                child.parent = seconds.parent


def measure(command: Sequence[str], environment: Mapping[str, str], log: Path, cwd: Path | None = None) -> Usage:
    """Run a command to its end.

    Args:
        command: to run.
        environment: more variables of it.
        log: where it prints to.
        cwd: its working directory; None for that of this process.

    Raises:
        CommandFailedError: it exited with another code than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        started = time.monotonic()
        child = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT, cwd=cwd
        )
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
        seconds = TreeSeconds(process)
        while child.poll() is None:
            samples.append((time.time(), seconds.sample_s(), tree_bytes(process)))
            time.sleep(SAMPLE_EVERY_S)
    except psutil.NoSuchProcess:
        return
