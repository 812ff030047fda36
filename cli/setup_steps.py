"""Steps of the set-up: each is done once, says so, and fails with what to do.

Standard library only: the set-up runs before anything is installed.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from include.threads import running_beside

ROOT = Path(__file__).resolve().parent.parent
SILENT_S = 15.0
"""Who is at work says so after each of these times, s."""


class SetupError(RuntimeError):
    """A step of the set-up failed; the message says what to do."""


def run(command: Sequence[str | Path], remedy: str) -> None:
    """Run a command quietly.

    Raises:
        SetupError: it failed; its last lines are shown together with the remedy.
    """
    argv = [str(part) for part in command]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n  ".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise SetupError(f"`{' '.join(argv[:6])} ...` failed\n  {tail}\n{remedy}")


@contextmanager
def never_silent(what: str, silent_s: float = SILENT_S, file: TextIO | None = None) -> Iterator[None]:
    """Say again and again what a block is at, and for how long."""
    ended, began_s = threading.Event(), time.monotonic()

    def say() -> None:
        while not ended.wait(silent_s):
            print(f"{what}, {time.monotonic() - began_s:.0f} s so far ...", file=file, flush=True)

    with running_beside(say, ended):
        yield


def step(name: str, done: Callable[[], bool], work: Callable[[], None]) -> None:
    """Do a step unless it is done, and say so."""
    if done():
        return
    print(f"setup: {name} ...", flush=True)
    started = time.monotonic()
    with never_silent(f"setup: {name}"):
        work()
    if not done():
        raise SetupError(f"{name}: no error but no result; remove .venv and .cache and run again")
    print(f"setup: {name} done in {time.monotonic() - started:.0f} s", flush=True)


def stamp_matches(stamp: Path, content: str) -> bool:
    """Return whether a step left a mark with this content."""
    return stamp.is_file() and stamp.read_text() == content


def works(command: Sequence[str | Path]) -> bool:
    """Return whether a command can be started and ends without an error."""
    try:
        return subprocess.run([str(part) for part in command], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
