"""Ticks of the controller for fleets of 100, 300, 1,000 and 3,000 jobs of 8 operators: seconds and memory.

A process of its own takes in 15 polls of all jobs, a minute apart, and makes ticks at them as the controller does, in
dry run on what the polls show: at an evaluation every job is evaluated under the default policy without a plan, which
is the dearest case, and every decision is logged; between evaluations requests are followed.  Jobs are dealt out among
as many processes as there are cores.  Timed: the last evaluation with its poll, by the clock and by the processor time
of all processes, the last tick without news, and the peak of memory of the whole tree of processes.  Set-up, not timed:
the replies of a simulated fleet, and reading them from their files.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil

from benchmarks.measurement import Measurement
from benchmarks.pipeline.live_windows import CLUSTERS, POLL_S, SIZES, poll_lines
from benchmarks.processes import TreeSeconds, measure
from controller.tick import Ticker
from controller.wiring import build_ticker
from include.flink.raw_format import RawRecord, write_lines
from include.settings import load_settings
from tools.raw_records import read_records

EVALUATION_S, IDLE_S, MEMORY_GIB = 5.0, 3.0, 1.0  # goals,
GOAL_JOBS = 1_000  # at this size


def read_and_time(directory: Path, lake: Path) -> dict[str, float]:
    """Make a tick after each poll in a directory; returns the seconds of the last evaluation and the last idle tick."""
    os.environ |= {
        "TIDEWISE__PATHS__LAKE": str(lake),
        "TIDEWISE__PATHS__OUT": str(lake / "out"),
        "TIDEWISE__MLFLOW__TRACKING_URI": f"sqlite:///{lake / 'mlflow.db'}",
        "TIDEWISE__PLANNER__TIMING__APPLY_EVERY_S": str(2 * POLL_S),
        "TIDEWISE__APPLY__PROCESSES": str(os.cpu_count() or 1),
    }
    now = {"s": 0.0}
    names = [f"cluster-{number}" for number in range(CLUSTERS)]
    ticker = build_ticker(load_settings, names, "benchmark", lambda: now["s"], is_rehearsal=True)
    result = {"evaluation_s": 0.0, "evaluation_cpu_s": 0.0, "idle_s": 0.0, "add_s": 0.0, "jobs": 0.0}
    tree = TreeSeconds(psutil.Process())
    for path in sorted(directory.glob("poll-*.jsonl.gz")):
        records = read_records(path)
        now["s"] = POLL_S * (max(record.observed_at_ms for record in records) // 1000 // POLL_S + 1)
        _tick(ticker, records, tree, result)
    ticker.close()
    return result


def _tick(ticker: Ticker, records: list[RawRecord], tree: TreeSeconds, result: dict[str, float]) -> None:
    """Time a tick with news, and one without."""
    ticker.add_records(records)
    began_cpu_s, began = tree.sample_s(), time.perf_counter()
    summary = ticker.tick()
    result["evaluation_s" if summary.is_evaluation else "add_s"] = time.perf_counter() - began
    if summary.is_evaluation:
        result["evaluation_cpu_s"] = tree.sample_s() - began_cpu_s
    began = time.perf_counter()
    ticker.tick()
    result["idle_s"] = time.perf_counter() - began
    result["jobs"] = summary.jobs


def run(work: Path, sizes: tuple[int, ...] = SIZES) -> list[Measurement]:
    """Measure each size of fleet.

    Args:
        work: an empty directory; everything is written below it.
        sizes: jobs.
    """
    result = []
    for jobs in sizes:
        polls, reported = work / f"polls-{jobs}", work / f"{jobs}.json"
        for poll, lines in enumerate(poll_lines(jobs)):
            write_lines(polls / f"poll-{poll:02}.jsonl.gz", lines)
        command = [sys.executable, "-m", __name__, str(polls), str(work / f"lake-{jobs}"), str(reported)]
        usage = measure(command, {}, work / f"{jobs}.log")
        times = json.loads(reported.read_text())
        if times["jobs"] != jobs:
            raise RuntimeError(f"{times['jobs']:.0f} of {jobs} jobs were seen")
        size = f"{jobs:,} jobs x 8 operators"
        result += [
            _measurement(f"controller, evaluation of {size}", times["evaluation_s"], "s", EVALUATION_S, jobs),
            Measurement(f"controller, evaluation of {size}, all processes", times["evaluation_cpu_s"], "CPU s"),
            _measurement(f"controller, tick without news, {size}", times["idle_s"], "s", IDLE_S, jobs),
            _measurement(f"controller, peak memory, {size}", usage.peak_bytes / 2**30, "GiB", MEMORY_GIB, jobs),
        ]
    return result


def _measurement(name: str, value: float, unit: str, goal: float, jobs: int) -> Measurement:
    """Return a figure, held against its goal where there is one."""
    if jobs != GOAL_JOBS:
        return Measurement(name, value, unit)
    return Measurement(name, value, unit, reference=goal, ratio=goal / value)


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(read_and_time(Path(sys.argv[1]), Path(sys.argv[2]))))
