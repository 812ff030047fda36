"""Write weeks of raw payloads of a simulated Flink cluster, made from real public traces."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import lab.simulation
from cli.arguments import EXIT_USAGE, CommandParser, UsageError, moment, require_writable, whole_number
from cli.out_lock import hold_folder
from cli.process_group import exit_on_sigterm
from include.atomic_write import write_json
from include.flink.raw_format import hour_directory, write_lines
from include.place import is_object, place
from include.raw_files import HISTORY_MANIFEST
from include.utc import IntervalError, floor_hour, format_utc
from lab.commands.simulated_jobs import SIMULATED_JOBS, load_simulated_jobs
from lab.commands.traces import TRACES, load_traces, week_second
from lab.commands.workers import end_with_parent
from lab.simulation.catalogue import CatalogueJob, assemble
from lab.simulation.control import FleetController
from lab.simulation.fleet import Fleet, pack
from lab.simulation.history import RunOptions, SimulatedHistory, find_fitting_parallelism, simulate
from lab.simulation.random_jobs import generate_fleet
from lab.simulation.randomness import job_generator
from lab.simulation.rest.cadence import PollSelection
from lab.simulation.rest.job_timeline import TimeOrigin
from lab.simulation.rest.lines import LineWriter
from lab.simulation.samples import SampledMetrics
from lab.simulation.source_load import WeeklyTrace, draw_source_rates
from lab.simulation.spec import SpecError
from lab.simulation.state import Restart
from models.arrays import Floats

POLL_BEFORE_WINDOW_END_S = 10  # so that the difference of two polls belongs to the window of the second
HOURS_PER_TASK = 12
JOBS_PER_FILE = 100
STEP_S = 60.0
MOST_DAYS = 3660
RECOVERY_S = 60
"""For so long after a job runs again ``make run`` has a poll of it in every step, as the default of settings has."""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What to write; the same request gives the same bytes.

    Attributes:
        hours: length, ending at ``end``.
        end: a full hour, UTC.
        raw: the raw root.
        scale_jobs: 0 for the thirteen jobs of the catalogue, else as many random ones of ``operators`` operators.
        window_s: seconds between polls.
        recovery_s: from a job's stop until so long after it runs again, and until it has caught up, it is polled in
            every step; 0: no more often than else.
    """

    hours: int
    end: datetime
    raw: Path
    cluster: str = "simulated"
    seed: int = 7
    scale_jobs: int = 0
    operators: int = 8
    window_s: int = 300
    recovery_s: int = 0

    def __post_init__(self) -> None:
        if floor_hour(self.end) != self.end:
            raise IntervalError(f"{format_utc(self.end)} is not on a full hour; pass the end of the history as one")
        if self.hours < 1 or self.window_s % int(STEP_S) or 3600 % self.window_s:
            raise SpecError("a history has at least one hour, and its window is whole minutes that divide an hour")

    @property
    def start(self) -> datetime:
        """Begin of the first hour."""
        return self.end - timedelta(hours=self.hours)

    @property
    def begin(self) -> datetime:
        """Begin of the simulation."""
        return self.start - timedelta(seconds=POLL_BEFORE_WINDOW_END_S)

    @property
    def sample_s(self) -> int:
        """Seconds between samples."""
        return int(STEP_S) if self.recovery_s else self.window_s

    @property
    def samples_per_hour(self) -> int:
        """Samples in each file, from which the polls are chosen."""
        return 3600 // self.sample_s

    @property
    def cadence(self) -> PollSelection:
        """Which samples are polled."""
        return PollSelection(self.window_s // self.sample_s, self.recovery_s)

    def jobs(self) -> list[CatalogueJob]:
        """Return the jobs to simulate."""
        return generate_fleet(self.scale_jobs, self.operators, self.seed) if self.scale_jobs else load_simulated_jobs()

    def traces(self) -> Mapping[str, WeeklyTrace]:
        """Return the traces that the jobs' loads name."""
        return load_traces()

    def fingerprint(self) -> str:
        """Return a hash of everything that the bytes depend on: the request, the code, the jobs, the traces."""
        digest = hashlib.sha256(json.dumps({**asdict(self), "raw": None}, default=str, sort_keys=True).encode())
        code = sorted(Path(lab.simulation.__path__[0]).rglob("*.py"))
        for path in [Path(__file__), *code, *sorted(SIMULATED_JOBS.glob("*.toml")), *sorted(TRACES.glob("*.csv.gz"))]:
            digest.update(path.read_bytes())
        return digest.hexdigest()


def run(
    request: HistoryRequest,
    jobs: Sequence[CatalogueJob],
    change: Callable[[FleetController], FleetController] | None = None,
) -> tuple[Fleet, SimulatedHistory]:
    """Simulate the request; polls lie a little before the ends of windows, so the run begins that much earlier.

    Args:
        request: what to simulate.
        jobs: of the request.
        change: from the jobs' own controller to another one; None for their own.
    """
    fleet, usual = assemble(jobs)
    control = usual if change is None else change(usual)
    rates = draw_rates(request, jobs, fleet)
    options = RunOptions(step_s=STEP_S, poll_s=request.sample_s, week_s=week_second(request.begin), seed=request.seed)
    return fleet, simulate(fleet, rates, find_fitting_parallelism(fleet, rates[0], 0.65), control, options)


def draw_rates(request: HistoryRequest, jobs: Sequence[CatalogueJob], fleet: Fleet) -> Floats:
    """Return the rates of the sources, (steps, J, O) records/s, 0 for the other operators."""
    traces, steps = request.traces(), round(request.hours * 3600 / STEP_S)
    rates = np.zeros((steps, *fleet.shape))
    for row, job in enumerate(jobs):
        generator = job_generator(request.seed, job.spec.name, "load")
        week_s = week_second(request.begin)
        own = draw_source_rates(job.loads, traces, week_s, steps=steps, step_s=STEP_S, generator=generator)
        rates[:, row, np.flatnonzero(fleet.is_source[row])] = own.T
    return rates


@dataclass(frozen=True, slots=True)
class _Task:
    """Some hours of a block of jobs, complete in itself so that another process can write it."""

    request: HistoryRequest
    block: int
    fleet: Fleet
    samples: SampledMetrics
    restarts: tuple[Restart, ...]
    origin: TimeOrigin
    first_sample: int
    hours: tuple[datetime, ...]


def _tasks(
    request: HistoryRequest, jobs: Sequence[CatalogueJob], fleet: Fleet, history: SimulatedHistory
) -> Iterator[_Task]:
    epoch_ms = round(request.begin.timestamp() * 1000)
    hours = [request.start + timedelta(hours=hour) for hour in range(request.hours)]
    for block, first in enumerate(range(0, len(jobs), JOBS_PER_FILE)):
        some = slice(first, min(first + JOBS_PER_FILE, len(jobs)))
        part = fleet if some == slice(0, len(jobs)) else pack(fleet.specs[some])
        restarts = tuple(
            replace(restart, job=restart.job - some.start)
            for restart in history.restarts
            if some.start <= restart.job < some.stop
        )
        origin = TimeOrigin(
            request.cluster, epoch_ms, tuple(epoch_ms - round(job.age_days * 86_400_000) for job in jobs[some])
        )
        for at in range(0, request.hours, HOURS_PER_TASK):
            chosen = tuple(hours[at : at + HOURS_PER_TASK])
            low = max(at * request.samples_per_hour - 1, 0)  # one more, to see what changed since
            samples = history.samples.cut(slice(low, (at + len(chosen)) * request.samples_per_hour), some)
            yield _Task(request, block, part, samples, restarts, origin, at * request.samples_per_hour - low, chosen)


def _write(task: _Task) -> tuple[int, int, int]:
    """Write the files of a task; returns hours, lines and bytes."""
    writer = LineWriter(task.fleet, task.samples, task.restarts, task.origin, task.request.cadence)
    lines = size = 0
    for index, hour in enumerate(task.hours):
        first = task.first_sample + index * task.request.samples_per_hour
        path = history_file(task.request, hour, task.block)
        samples = range(first, first + task.request.samples_per_hour)
        lines += write_lines(path, writer.hour(samples, cluster_wide=task.block == 0))
        size += path.stat().st_size
    return len(task.hours), lines, size


def history_file(request: HistoryRequest, hour: datetime, block: int) -> Path:
    """Return the file of one hour and block of jobs."""
    return hour_directory(request.raw, request.cluster, hour) / f"history-{block:03d}.jsonl.gz"


def _files(request: HistoryRequest) -> list[Path]:
    return sorted((request.raw / f"cluster={request.cluster}").glob("date=*/hour=*/history-*.jsonl.gz"))


def write_history(request: HistoryRequest, workers: int | None = None) -> dict[str, object]:
    """Write a history unless the same one is there already; returns its counts.

    The manifest is removed first and written last: a run that was killed is done again in full.
    """
    manifest = request.raw / f"cluster={request.cluster}" / HISTORY_MANIFEST
    fingerprint, started = request.fingerprint(), time.monotonic()
    if manifest.is_file():
        result: dict[str, object] = json.loads(manifest.read_text())
        if result["fingerprint"] == fingerprint and result["bytes"] == sum(
            path.stat().st_size for path in _files(request)
        ):
            return {**result, "skipped": True}
        manifest.unlink()
    for path in _files(request):
        path.unlink()
    jobs = request.jobs()
    fleet, history = run(request, jobs)
    simulated_s = time.monotonic() - started
    # The client of a bucket has threads, of which a fork would have none, and wait for them for ever.
    start = "fork" if sys.platform == "linux" and not is_object(request.raw) else "spawn"
    lines, size = _write_all(list(_tasks(request, jobs, fleet, history)), workers or os.cpu_count() or 1, start)
    summary: dict[str, object] = {
        "fingerprint": fingerprint,
        "jobs": len(jobs),
        "operators": int(fleet.present.sum()),
        "start": format_utc(request.start),
        "end": format_utc(request.end),
        "lines": lines,
        "bytes": size,
        "restarts": len(history.restarts),
    }
    write_json(manifest, summary)
    times = {"simulated_s": round(simulated_s, 1), "seconds": round(time.monotonic() - started, 1)}
    return {**summary, **times, "skipped": False}


def _write_all(tasks: Sequence[_Task], workers: int, start: str) -> tuple[int, int]:
    """Write all tasks with some processes and show the progress; returns lines and bytes."""
    lines = size = 0
    columns = (TextColumn("history"), BarColumn(), MofNCompleteColumn(), TextColumn("file hours"), TimeElapsedColumn())
    context = multiprocessing.get_context(start)
    with context.Pool(min(workers, len(tasks)), end_with_parent) as pool, Progress(*columns) as progress:
        bar = progress.add_task("history", total=sum(len(task.hours) for task in tasks))
        for done, some_lines, some_bytes in pool.imap_unordered(_write, tasks):
            progress.advance(bar, done)
            lines, size = lines + some_lines, size + some_bytes
    return lines, size


def _parse(argv: Sequence[str] | None) -> tuple[HistoryRequest, int | None]:
    parser = CommandParser(prog="history", description=__doc__)
    parser.add_argument("--days", type=whole_number(1, MOST_DAYS), default=21)
    parser.add_argument("--hours", type=whole_number(1, 24 * MOST_DAYS), help="length in hours instead of --days")
    parser.add_argument("--end", type=moment, required=True, help="ISO 8601, a full hour, UTC")
    parser.add_argument("--out", type=place, default=Path("out/raw"), help="raw root")
    parser.add_argument("--cluster", default="simulated")
    parser.add_argument("--seed", type=whole_number(0), default=7)
    parser.add_argument(
        "--scale-jobs", type=whole_number(0), default=0, help="this many random jobs instead of the catalogue"
    )
    parser.add_argument("--operators", type=whole_number(1), default=8, help="of each random job")
    parser.add_argument("--window-s", type=whole_number(1, 3600), default=300, help="seconds between polls")
    parser.add_argument(
        "--recovery-s",
        type=whole_number(0, 3600),
        default=0,
        help="seconds after a restart for which a job is polled every minute, and until it has caught up",
    )
    parser.add_argument("--workers", type=whole_number(1, 256), help="processes that write (default: all cores)")
    a = parser.parse_args(argv)
    hours = a.hours if a.hours is not None else 24 * a.days
    request = HistoryRequest(
        hours, a.end, a.out, a.cluster, a.seed, a.scale_jobs, a.operators, a.window_s, a.recovery_s
    )
    return request, a.workers


def main(argv: Sequence[str] | None = None) -> int:
    """Write a history and print its counts as one JSON line."""
    exit_on_sigterm()
    try:
        request, workers = _parse(argv)
        with hold_folder(request.raw.parent, "history", f".{request.raw.name}.lock"):
            require_writable(request.raw)
            print(json.dumps(write_history(request, workers)))
    except (SpecError, IntervalError, UsageError) as error:
        print(f"history: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("history: stopped; the next call writes it from the beginning", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
