"""No worker process outlives its command, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from include.settings import PROJECT

POOL = """
import faulthandler, multiprocessing, signal, sys, time
from cli.process_group import exit_on_sigterm
from lab.commands.workers import end_with_parent
faulthandler.register(signal.SIGUSR1)
exit_on_sigterm()
context = multiprocessing.get_context("fork")
with context.Pool(2, end_with_parent) as pool:
    found = pool.map_async(time.sleep, [600.0, 600.0])
    print("ready", flush=True)
    found.get()
"""
# It is ready when its workers are at work. Before, its main thread and the one that hands work out want one lock of a
# Future; an interrupt within Condition.__enter__, after that lock was taken, leaves it taken, and the pool never ends.
EXECUTOR = """
import faulthandler, multiprocessing, signal, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.managers import SyncManager
from cli.process_group import exit_on_sigterm
from lab.commands.workers import end_with_parent, stop_workers
def work(begun):
    begun.put(1)
    time.sleep(600.0)
if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    exit_on_sigterm()
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(end_with_parent)
    with manager, ProcessPoolExecutor(2, mp_context=context, initializer=end_with_parent) as pool, stop_workers():
        begun = manager.Queue()
        waiting = [pool.submit(work, begun) for _ in range(2)]
        for _ in waiting:
            begun.get()
        print("ready", flush=True)
        waiting[0].result()
"""
WITHIN_S = 60.0


def start(code, workers, tmp_path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """Start a command; returns it with its workers once they are all there."""
    script = tmp_path / "command.py"
    script.write_text(code)
    environment = {"PYTHONPATH": str(PROJECT)}
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment, text=True)
    assert child.stdout.readline() == "ready\n"
    deadline = time.monotonic() + WITHIN_S
    while len(result := psutil.Process(child.pid).children(recursive=True)) < workers:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return child, result


def wait_for_end(child: subprocess.Popen[str]) -> int:
    """Return the exit code; a command that does not end shows where its threads are, and is killed."""
    try:
        return child.wait(timeout=WITHIN_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGUSR1)
        time.sleep(1.0)
        child.kill()
        raise


@pytest.mark.covers("ingest_review 4")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill", "term", "int"])
@pytest.mark.parametrize(("code", "workers"), [(POOL, 2), (EXECUTOR, 3)], ids=["pool", "executor"])
def test_workers_end_with_their_command(code, workers, how, tmp_path):
    child, result = start(code, workers, tmp_path)
    child.send_signal(how)
    assert wait_for_end(child) == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: -2}[how]
    gone, alive = psutil.wait_procs(result, timeout=WITHIN_S)
    for one in alive:
        one.kill()
    assert not alive
    assert len(gone) >= workers
