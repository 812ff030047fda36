"""Processor seconds of a tree of real processes: those that ended stay counted, each once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from waiting import wait_until

from benchmarks.processes import TreeSeconds

BURNT_S = 0.2
ROUNDED_S = 0.02  # user and system seconds are each cut to ticks of 10 ms
BURN = f"import signal, time\nwhile time.process_time() < {BURNT_S}: pass\n"
CHILD = f"subprocess.Popen([sys.executable, '-S', '-c', {BURN + 'signal.pause()'!r}])"
SHORT = f"subprocess.run([sys.executable, '-S', '-c', {BURN!r}])"
PARENTS = {
    "waits": f"{CHILD}.wait()",
    "does not wait": f"signal.signal(signal.SIGCHLD, signal.SIG_IGN); child = {CHILD}",
    "has ended": f"os.fork() or ({CHILD}, sys.stdin.readline(), os._exit(0)); os.wait()",
}


@pytest.fixture
def parent(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    script = f"import os, signal, subprocess, sys; {request.param}; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-S", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def find_burner(times: TreeSeconds) -> psutil.Process | None:
    """Return the child when it has burnt its seconds."""
    times.sample_s()
    *_, last = times._members
    with suppress(psutil.Error):
        return last if last.status() == psutil.STATUS_SLEEPING and sum(last.cpu_times()) >= BURNT_S / 2 else None
    return None


@pytest.mark.parametrize("parent", PARENTS.values(), ids=PARENTS.keys(), indirect=True)
def test_a_child_that_ended_is_counted_once(parent: subprocess.Popen[bytes]) -> None:
    times = TreeSeconds(psutil.Process(parent.pid))
    burner = wait_until(lambda: find_burner(times), 20, 0.02)
    assert burner
    assert parent.stdin
    parent.stdin.write(b"\n")
    parent.stdin.flush()
    times.sample_s()
    before_s = times.sample_s()
    burner.kill()
    wait_until(lambda: not burner.is_running() or burner.status() == psutil.STATUS_ZOMBIE, 20, 0.02)
    after_s = [times.sample_s() for _ in range(3)]
    assert before_s >= BURNT_S - ROUNDED_S
    assert after_s == sorted(after_s)
    assert before_s <= after_s[-1] < before_s + BURNT_S / 2


@pytest.mark.parametrize("parent", [SHORT], indirect=True)
def test_a_child_that_came_and_went_between_samples_is_in_its_parents_seconds(parent: subprocess.Popen[bytes]) -> None:
    times = TreeSeconds(psutil.Process(parent.pid))
    assert parent.stdout
    parent.stdout.read(1)
    assert BURNT_S - ROUNDED_S <= times.sample_s() < 2 * BURNT_S
