"""The controllers of a run: processes that are started, killed, stopped for a while, and run in a changed world."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.waiting import NotReachedError, wait_until
from include.settings import PROJECT
from lab.local_flink.processes import end_process, start_process

_ENDS_S = 40.0


class Controllers:
    """Those that were started, with their output in one file.

    Args:
        environment: of their processes.
        output: file for what they print.
        clock_file: how many seconds their clock is ahead, for those that are started with it.
    """

    def __init__(self, environment: Mapping[str, str], output: Path, clock_file: Path) -> None:
        self._environment, self._output, self._clock_file = dict(environment), output, clock_file
        self._started: list[subprocess.Popen[bytes]] = []
        self._orphans: list[int] = []

    @property
    def alive(self) -> list[subprocess.Popen[bytes]]:
        """Those that have not ended."""
        return [process for process in self._started if process.poll() is None]

    def start(self, module: str = "controller", *arguments: str) -> subprocess.Popen[bytes]:
        """Start a controller, or a module that starts one."""
        command = [sys.executable, "-m", module, *arguments]
        environment = {"PYTHONPATH": str(PROJECT), **self._environment}
        process = start_process([*_without_override(), *command], self._output, environment)
        self._started.append(process)
        return process

    def start_with_clock(self) -> subprocess.Popen[bytes]:
        """Start a controller whose clock can be set (:meth:`set_clock`)."""
        self.set_clock(0.0)
        return self.start("benchmarks.chaos.clocked_controller", str(self._clock_file))

    def set_clock(self, ahead_s: float) -> None:
        """Set the clocks of controllers that were started for it."""
        temporary = self._clock_file.with_suffix(".new")
        temporary.write_text(str(ahead_s))
        temporary.replace(self._clock_file)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a controller outright."""
        end_process(process, grace_s=0)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a controller to end, as an operator does; it gives its lease back."""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                self.kill(process)
                raise NotReachedError(f"a controller did not end within {_ENDS_S:g} s of SIGTERM") from None

    def adopt(self, pid: int) -> None:
        """Remember a controller that another process has started."""
        self._orphans.append(pid)

    def end_orphans(self) -> None:
        """Ask those that another process has started to end, and wait for it."""
        for pid in self._orphans:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(_is_running, self._orphans)), _ENDS_S, "the orphaned controllers have ended")
        self._orphans.clear()

    def kill_all(self) -> None:
        """End everything that was started."""
        for process in self.alive:
            end_process(process, grace_s=0)
        for pid in self._orphans:
            if _is_running(pid):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Let every write of the controllers to a file fail, as on a disk without space."""
        before = {process.pid: resource.prlimit(process.pid, resource.RLIMIT_FSIZE) for process in self.alive}
        for pid, (_, most) in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        try:
            yield
        finally:
            for pid, limits in before.items():
                if psutil.pid_exists(pid):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def _without_override() -> list[str]:
    """Return the start of a command under which file modes hold for the superuser, too."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
