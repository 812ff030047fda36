"""Live windows of fleets of 100, 300, 1,000 and 3,000 jobs of 8 operators: one tick, with 15 polls kept.

A process of its own takes in 15 polls of all jobs, a minute apart, as the poller hands them over, and makes the windows
after each.  Its last ticks are timed: taking in the replies of a poll, and from there to what a policy looks at of
every job.  Windows are as short as the polls, so that there are as many as there can be.  Set-up, not timed: the
replies of a simulated fleet, and reading them from their files.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measurement import Measurement
from benchmarks.processes import measure
from include.flink.raw_format import RawRecord, write_lines
from lab.commands.history import JOBS_PER_FILE, HistoryRequest
from lab.commands.history import run as simulate
from lab.simulation.fleet import pack
from lab.simulation.rest.job_timeline import TimeOrigin
from lab.simulation.rest.lines import LineWriter
from models.polling.poll_history import PollHistory
from tools.raw_records import read_records

SIZES = (100, 300, 1_000, 3_000)
OPERATORS = 8
POLLS = 15
POLL_S = 60
TIMED = 3  # ticks; the middle one counts
CLUSTERS = 20
END = datetime(2026, 11, 20, 20, tzinfo=UTC)


def poll_lines(jobs: int) -> Iterator[list[str]]:
    """Yield the raw lines of one poll after the other; every job's checkpoints, failures and plan are in each."""
    request = HistoryRequest(1, END, Path(), scale_jobs=jobs, operators=OPERATORS, window_s=POLL_S)
    fleet, history = simulate(request, request.jobs())
    epoch_ms = round(request.start.timestamp() * 1000)
    writers = []
    for number, first in enumerate(range(0, jobs, JOBS_PER_FILE)):
        some = slice(first, min(first + JOBS_PER_FILE, jobs))
        origin = TimeOrigin(
            f"cluster-{number % CLUSTERS}", epoch_ms, (epoch_ms - 86_400_000,) * (some.stop - some.start)
        )
        samples = history.samples.cut(slice(0, POLLS), some)
        writers.append(LineWriter(pack(fleet.specs[some]), samples, (), origin))
    for poll in range(POLLS):
        yield [line for writer in writers for line in writer.hour(range(poll, poll + 1), cluster_wide=False)]


def tick(history: PollHistory, records: list[RawRecord], now_s: float) -> dict[str, float]:
    """Take in a poll and make what a policy looks at; returns the seconds of both, and the processor time."""
    began, began_cpu = time.perf_counter(), time.process_time()
    faults = history.add(records)
    added = time.perf_counter()
    windows, jobs = history.windows(now_s), history.jobs()
    observed = [windows.observations(number) for number in range(len(jobs))]
    ended, cpu_s = time.perf_counter(), time.process_time() - began_cpu
    if faults:
        raise RuntimeError(f"{len(faults)} replies could not be used, such as {faults[0]}")
    windows_observed = float(sum(map(len, observed)))
    return {"add_s": added - began, "windows_s": ended - added, "cpu_s": cpu_s, "windows": windows_observed}


def read_and_time(directory: Path) -> dict[str, float]:
    """Run all ticks of the polls in a directory; returns the middle one of the last."""
    history = PollHistory({}, other_window_s=POLL_S, polls=POLLS)
    result = []
    for path in sorted(directory.glob("poll-*.jsonl.gz")):
        records = read_records(path)
        now_s = POLL_S * (max(record.observed_at_ms for record in records) // 1000 // POLL_S + 1)
        result.append(tick(history, records, now_s))
    last = sorted(result[-TIMED:], key=lambda one: one["add_s"] + one["windows_s"])
    return {**last[TIMED // 2], "arrays_bytes": float(history.nbytes)}


def run(work: Path, sizes: tuple[int, ...] = SIZES) -> list[Measurement]:
    """Measure each size in a process of its own."""
    result: list[Measurement] = []
    for jobs in sizes:
        below, reported = work / str(jobs), work / f"{jobs}.json"
        for poll, lines in enumerate(poll_lines(jobs)):
            write_lines(below / f"poll-{poll:02}.jsonl.gz", lines)
        usage = measure([sys.executable, "-m", __name__, str(below), str(reported)], {}, work / f"{jobs}.log")
        figures = json.loads(reported.read_text())
        if figures["windows"] < 0.8 * jobs * (POLLS - 1):
            raise RuntimeError(f"{figures['windows']:g} windows of {jobs} jobs are too few: the fleet was not seen")
        size = f"{jobs:,} jobs x {OPERATORS} operators, {POLLS} polls"
        result += [
            Measurement(f"live windows, replies of a poll taken in, {size}", figures["add_s"], "s"),
            Measurement(f"live windows, windows of all jobs, {size}", figures["windows_s"], "s"),
            Measurement(f"live windows, processor time of both, {size}", figures["cpu_s"], "s"),
            Measurement(f"live windows, arrays, {size}", figures["arrays_bytes"] / 2**20, "MiB"),
            Measurement(f"live windows, whole process at its peak, {size}", usage.peak_bytes / 2**20, "MiB"),
        ]
    return result


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(read_and_time(Path(sys.argv[1]))))
