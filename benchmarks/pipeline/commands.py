"""Processor seconds of the commands for whose answer a person waits, on a small made-up fleet.

Processor seconds of the whole process tree, not wall time: what else runs on the machine does not lengthen them.
Long commands are measured until they have read their arguments.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Measurement
from benchmarks.pipeline.made_fleet import CLUSTER, Size, hour_before, job_name, write_fleet
from benchmarks.processes import CommandFailedError
from cli.embedded import below
from include.settings import PROJECT

SIZE = Size(jobs=20, operators=4, hours=24, log_rows=2_000, forecast_hours=2)
JOB = f"{CLUSTER}/{job_name(1)}"
SETUP = ["make", "--silent", "setup"]
ANSWERS = (
    "status",
    "log",
    f"log {JOB}",
    f"why {JOB}",
    "plan",
    "quarantine",
    f"undo {JOB}",
    "hold --list",
    f"hold {JOB}",
    f"release {JOB}",
    "approve --list",
    "lift --list",
    "models list",
)
STARTS = ("run", "advise", "backtest", "ui", "demo", "doctor", "manifests", "page")
GOAL_S, RUNS = 2.0, 3


def list_calls() -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each measurement, and its call."""
    yield "make setup", SETUP
    for command in ANSWERS:
        yield f"tidewise {command}", ["./tidewise", *command.split()]
    for verb in STARTS:
        yield f"tidewise {verb}, until its arguments are read", ["./tidewise", verb, "--help"]


def time_call(call: list[str], environment: dict[str, str]) -> float:
    """Return the processor seconds of a call and of all that it starts.

    Raises:
        CommandFailedError: it has no answer. That something is wrong with the fleet is one.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(call, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if "Traceback" in done.stderr or not done.stdout + done.stderr:
        raise CommandFailedError(f"{' '.join(call)}: {done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(work: Path, size: Size = SIZE, runs: int = RUNS) -> list[Measurement]:
    """Return the figures: the median of some runs of each, beside the goal."""
    write_fleet(str(work / "lake"), size, hour_before(time.time()))
    environment = dict(os.environ) | below(work)
    subprocess.run(SETUP, cwd=PROJECT, check=True, capture_output=True)  # something to look at
    result = []
    for name, call in list_calls():
        seconds = statistics.median(time_call(call, environment) for _ in range(runs))
        result.append(Measurement(name, seconds, "processor s", GOAL_S, GOAL_S / seconds))
    return result
