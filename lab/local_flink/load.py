"""The project's own load job (``flink_job/``): its parameters, its rate trace, and how it is submitted."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from include.flink.faults import FlinkUnreachableError
from include.flink.job_states import ENDED_STATES
from include.utc import DAY_S
from lab.local_flink.build import ENTRY_CLASS, FLINK_HOME, build_job
from lab.local_flink.job_client import JobClient

SUBMITTED_WITHIN_S = 180.0
SOURCE, ENRICH, AGGREGATE, SINK = "Source: orders", "enrich", "aggregate", "sink: Writer"  # names of its vertices
# Those of the other forms: chains as Flink joins them by default.
CHAINED = f"{SOURCE} -> keep -> {ENRICH} -> {SINK}"
ROUTED = f"{SOURCE} -> keep -> route"
COUNTED_SINK = f"received -> {SINK}"
ENRICHED, EXPRESS = f"{ENRICH} -> aged -> {SINK}", f"express -> express {SINK}"


class LoadTopology(StrEnum):
    """What the load job is made of: four vertices in a row, one, or with a side output; counted: the sinks count."""

    PLAIN = "plain"
    COUNTED = "counted"
    CHAINED = "chained"
    SIDE_OUTPUTS = "side-outputs"
    COUNTED_SIDE_OUTPUTS = "counted-side-outputs"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Parameters of the load job.

    Attributes:
        job_name: its name in Flink.
        low_per_s, high_per_s: night and day rate of the source, records per wall-clock second.
        compression: trace seconds that pass in a wall-clock second; the trace is one day and repeats.
        cost_us: processor time that ``enrich`` burns per record.
        wait_us: time that it waits per record, as for a lookup; lets it scale beyond the cores of one machine.
        customers: number of keys of ``aggregate``.
        emit_every: ``aggregate`` emits one record per this many of a key (its selectivity is the inverse).
        parallelism: of every vertex at the start.
        splits: shares of the source that its readers divide.
        warm_up_sources: sources that finish soon, all of one name, as a job has that reads history first.
        form: of the job graph.
        chaining: whether Flink may chain operators, as it does by default.
        keep_one_in: of the chained forms, one order in so many passes the filter in the source's chain.
        express_one_in: of the kept orders, one in so many goes over the side output.
        counts_in: whether the source counts numRecordsIn, as Kafka's does.
        fails_above: parallelism of ``enrich`` above which the job fails.
        checkpoints: whether checkpoints are taken, at the interval of the cluster.
        trace: (second, records/s) in the place of the daily trace between the two rates; the last closes a cycle.
        shows_pending: whether the source reports ``pendingRecords``.
        behaviour: file that says what the job is to do wrong (``flink_job/README.md``); None: nothing.
    """

    job_name: str = "orders"
    low_per_s: float = 300.0
    high_per_s: float = 3600.0
    compression: float = 96.0
    cost_us: int = 150
    wait_us: int = 250
    customers: int = 1000
    emit_every: int = 10
    max_parallelism: int = 128
    parallelism: int = 1
    splits: int = 12
    warm_up_sources: int = 0
    form: LoadTopology = LoadTopology.PLAIN
    chaining: bool = True
    keep_one_in: int = 1
    express_one_in: int = 10
    counts_in: bool = False
    fails_above: int = 1_000_000
    checkpoints: bool = True
    trace: tuple[tuple[int, float], ...] = ()
    shows_pending: bool = True
    behaviour: Path | None = None

    def arguments(self, trace: Path) -> list[str]:
        """Return the program arguments of ``io.tidewise.load.LoadJob``."""
        values = {
            "trace": trace,
            "compression": self.compression,
            "cost-us": self.cost_us,
            "wait-us": self.wait_us,
            "customers": self.customers,
            "emit-every": self.emit_every,
            "max-parallelism": self.max_parallelism,
            "parallelism": self.parallelism,
            "splits": self.splits,
            "job-name": self.job_name,
            "warm-up-sources": self.warm_up_sources,
            "form": self.form,
            "chaining": "on" if self.chaining else "off",
            "keep-one-in": self.keep_one_in,
            "express-one-in": self.express_one_in,
            "pending": "on" if self.shows_pending else "off",
            "counts": "in" if self.counts_in else "out",
            "fails-above": self.fails_above,
            "checkpoints": "on" if self.checkpoints else "off",
            **({} if self.behaviour is None else {"behaviour": self.behaviour}),
        }
        return [part for key, value in values.items() for part in (f"--{key}", str(value))]


def daily_trace(low_per_s: float, high_per_s: float, step_s: int = 300) -> list[tuple[int, float]]:
    """Return (second, records per second) of a day: low at midnight, high after noon, with waves of some two hours."""
    points = []
    for second in range(0, DAY_S + 1, step_s):
        turn = 2 * math.pi * second / DAY_S
        day = 0.5 - 0.5 * math.cos(turn)
        ripple = 0.12 * math.sin(11 * turn) * day
        points.append((second, low_per_s + (high_per_s - low_per_s) * max(0.0, day + ripple)))
    return points


def due_after(elapsed_s: float, options: LoadOptions) -> float:
    """Return the records due after a while by the daily trace: trapezoids between its points, cycle after cycle."""
    points = daily_trace(options.low_per_s, options.high_per_s)
    steps = [
        ((right - left) / options.compression, (here + there) / 2)
        for (left, here), (right, there) in itertools.pairwise(points)
    ]
    due = 0.0
    while elapsed_s > 0:
        for seconds, rate in steps:
            due += rate * min(seconds, max(0.0, elapsed_s))
            elapsed_s -= seconds
    return due


def write_trace(path: Path, points: list[tuple[int, float]]) -> None:
    """Write a trace as the job reads it."""
    path.write_text("second,rate_per_s\n" + "".join(f"{second},{rate:.3f}\n" for second, rate in points))


def submit_load(
    client: JobClient,
    work_dir: Path,
    options: LoadOptions,
    flink_home: Path = FLINK_HOME,
    *,
    within_s: float = SUBMITTED_WITHIN_S,
) -> str:
    """Build the job if need be, upload it, start it; returns the job id. The JobManager must see ``work_dir``.

    On a slow machine the JobManager replies late: the upload is tried again; a start that was not answered is looked
    for among the jobs and not sent again, so that there is one job.

    Raises:
        FlinkError: it was refused, or not done in time.
    """
    trace = work_dir.resolve() / f"trace-{options.job_name}.csv"
    write_trace(trace, list(options.trace) or daily_trace(options.low_per_s, options.high_per_s))
    jar, deadline = build_job(flink_home), time.monotonic() + within_s
    uploaded = _ask_until(deadline, lambda: client.upload_jar(jar))
    try:
        return client.run_jar(uploaded, ENTRY_CLASS, options.arguments(trace))
    except FlinkUnreachableError:
        while time.monotonic() < deadline:
            job_id = _ask_until(deadline, lambda: _find_job(client, options.job_name))
            if job_id:
                return job_id
            time.sleep(1.0)
        raise


def _ask_until(deadline: float, ask: Callable[[], str]) -> str:
    while True:
        try:
            return ask()
        except FlinkUnreachableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)


def _find_job(client: JobClient, name: str) -> str:
    """Return the id of a job that has not ended; empty where there is none."""
    jobs = client.jobs()["jobs"]
    return next((str(job["jid"]) for job in jobs if job["name"] == name and job["state"] not in ENDED_STATES), "")
