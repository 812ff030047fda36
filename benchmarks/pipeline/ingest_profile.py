"""Where the processor time of an ingestion goes: its processes, and the driver's Java by groups of threads (Linux)."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, END, HOUR, MASTER, environment
from benchmarks.processes import CommandFailedError
from include.settings import load_settings
from include.spark.submission import prepare_submission
from include.stage_names import Stage
from include.stage_request import StageRequest
from lab.commands.history import HistoryRequest, write_history

SAMPLE_EVERY_S = 0.15
_UNIT = "CPU s"
Key = tuple[int, float]
"""Process number and when it began."""


class Sampler:
    """What a process, its children and the threads of Java among them took, up to the last sample."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._processes: dict[Key, tuple[str, float]] = {}
        self._threads: dict[tuple[int, int], tuple[str, float]] = {}

    def sample(self) -> None:
        """Look at all of them now; those that have ended stay as they were seen last."""
        try:
            members = [self._process, *self._process.children(recursive=True)]
        except psutil.Error:
            return
        for member in members:
            try:
                self._look_at(member)
            except (psutil.Error, OSError):
                continue  # it ended meanwhile

    def _look_at(self, member: psutil.Process) -> None:
        key, times, words = (member.pid, member.create_time()), member.cpu_times(), member.cmdline()
        name = name_process(words) if words else self._processes.get(key, ("shell", 0.0))[0]  # one at its end has none
        self._processes[key] = name, times.user + times.system
        if name != "Java":
            return
        for thread in member.threads():
            comm = Path(f"/proc/{member.pid}/task/{thread.id}/comm").read_text(encoding="utf-8").strip()
            self._threads[member.pid, thread.id] = name_threads(comm), thread.user_time + thread.system_time

    def sum_up(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the processor seconds of processes and of Java's threads, by name."""
        return _sum_by_name(self._processes.values()), _sum_by_name(self._threads.values())


def _sum_by_name(taken: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the sums by name, the largest first."""
    result: dict[str, float] = {}
    for name, seconds in taken:
        result[name] = result.get(name, 0.0) + seconds
    return dict(sorted(result.items(), key=lambda one: -one[1]))


def name_process(words: list[str]) -> str:
    """Return what a process of a submission does.

    >>> name_process(["/usr/bin/java", "-cp", "x", "org.apache.spark.deploy.SparkSubmit"])
    'Java'
    """
    line = " ".join(words)
    if "org.apache.spark.launcher.Main" in line:
        return "launcher"
    if "org.apache.spark.deploy.SparkSubmit" in line:
        return "Java" if Path(words[0]).name == "java" else "shell"
    if "pyspark.daemon" in line:
        return "Python workers"
    return "Python driver" if Path(words[0]).name.startswith("python") else "shell"


def name_threads(comm: str) -> str:
    """Return the name that threads of a group share; the system keeps 15 characters of each.

    >>> [name_threads(comm) for comm in ("Executor task l", "C1 CompilerThre", "GC Thread#1", "Thread-12")]
    ['Executor task l', 'C1 CompilerThre', 'GC Thread', 'Thread']
    """
    return re.sub(r"[-#]\d.*$", "", comm)


def run(work: Path, jobs: int = 100, operators: int = 8) -> list[Measurement]:
    """Profile an ingestion of one hour of a fleet polled once a minute, into a new lake.

    Raises:
        CommandFailedError: it failed.
    """
    with environment(work):
        write_history(HistoryRequest(1, END, work / "raw", CLUSTER, scale_jobs=jobs, operators=operators, window_s=60))
        submission = prepare_submission(load_settings(), MASTER)
        command = submission.command(StageRequest(Stage.INGEST, END, END - HOUR, END).to_argv())
        log = work / "ingest.log"
        with log.open("wb") as output:
            variables = {**os.environ, **submission.environment}
            child = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
            sampler = Sampler(psutil.Process(child.pid))
            while child.poll() is None:
                sampler.sample()
                time.sleep(SAMPLE_EVERY_S)
    if child.returncode != 0:
        raise CommandFailedError(f"exited with {child.returncode}:\n{log.read_text(errors='replace')[-2000:]}")
    processes, threads = sampler.sum_up()
    name = f"ingest of an hour, {jobs:,} jobs"
    rows = [(f"{name}: {part}", seconds) for part, seconds in processes.items()]
    rows += [(f"{name}: threads {part}", seconds) for part, seconds in threads.items() if seconds >= 0.1]
    return [Measurement(f"{name}: all", sum(processes.values()), _UNIT), *(Measurement(*row, _UNIT) for row in rows)]
