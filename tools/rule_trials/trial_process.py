"""Processes that try one thing each, forked from this one, with limits of time and a folder of their own."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NOTICED, MISSED, UNTRIED = "noticed by a test", "missed by the tests", "could not be tried"
BY_CRASH, BY_TIME_LIMIT = "noticed by a crash", "noticed by a time limit"
_NOTICED_CODE = 1


@dataclass(frozen=True, slots=True)
class Trial:
    """One process to come.

    Attributes:
        name: what it tries.
        run: what it does: returns whether anything was noticed.
        cpu_s: seconds of the processor after which it does not end any more.
        wall_s: the same by the clock, for a process that waits.
    """

    name: str
    run: Callable[[], bool]
    cpu_s: float
    wall_s: float


def run_trials(trials: Iterable[Trial], children: int, report: Callable[[str, str, str], object]) -> None:
    """Run processes, some at a time; ``report`` gets name, outcome and what the process said of it.

    This process must have a single thread, so that it may be forked.
    """
    folder = Path(tempfile.mkdtemp(prefix="rules-"))
    running: dict[int, tuple[Trial, float, Path]] = {}
    waiting = iter(trials)
    try:
        while True:
            while len(running) < children and (trial := next(waiting, None)) is not None:
                own = Path(tempfile.mkdtemp(dir=folder))
                running[_start(trial, own)] = (trial, time.monotonic(), own)
            if not running:
                return
            for child, (trial, began_s, own) in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended and time.monotonic() - began_s > trial.wall_s:
                    os.kill(child, signal.SIGXCPU)
                elif ended:
                    del running[child]
                    _end_group(child)
                    output = own / "output"
                    report(trial.name, name_end(status), output.read_text() if output.exists() else "")
                    shutil.rmtree(own, ignore_errors=True)
            time.sleep(0.005)
    finally:
        for child in running:
            _end_group(child)
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    """Leave a word for the process that started this one."""
    (Path(tempfile.gettempdir()) / "output").write_text(text)


def name_end(status: int) -> str:
    """Return what the end of a process says of its change."""
    if os.WIFSIGNALED(status):
        return BY_TIME_LIMIT if os.WTERMSIG(status) == signal.SIGXCPU else BY_CRASH
    return {0: MISSED, _NOTICED_CODE: NOTICED}.get(os.WEXITSTATUS(status), UNTRIED)


def _start(trial: Trial, own: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (round(trial.cpu_s), resource.RLIM_INFINITY))
        tempfile.tempdir = os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(own)
        code = _NOTICED_CODE if trial.run() else 0
    finally:
        os._exit(code)


def _end_group(child: int) -> None:
    """End what a process has left running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
