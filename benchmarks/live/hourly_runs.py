"""The product's hourly DAG beside a job: Airflow runs it at its own times, as in production."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from croniter import croniter

from cli.dag_client import DagClient
from cli.embedded import airflow_environment
from include.place import place
from include.settings import load_settings
from include.threads import running_beside
from include.utc import HOUR, floor_hour, format_utc, parse_utc

DAG = "tidewise_hour"
_LEAST_PRIORITY = 19


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of a plan: when it is due, epoch seconds, and slots."""

    at_s: float
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class HourRun:
    """A run of the DAG.

    Attributes:
        due_s: when it was due, epoch seconds.
        begun_s: when it began.
        seconds: that it took, with the start of Airflow.
        trouble: why it failed; empty: it succeeded.
        answer: what its plan says of the job: the reason of its first row.
        steps: of its plan.
    """

    due_s: float
    begun_s: float
    seconds: float
    trouble: str
    answer: str
    steps: list[PlannedStep]

    @property
    def ends_s(self) -> float:
        """When it had ended."""
        return self.begun_s + self.seconds


def find_due(cron: str, after_s: float, now_s: float) -> float | None:
    """Return the last time of a cron expression until now, None where it is not after a time.

    So a scheduler without catch-up runs one of several hours that it missed.
    """
    before = float(croniter(cron, datetime.fromtimestamp(now_s, UTC)).get_prev(float))
    return before if before > after_s else None


class HourlyRuns:
    """Runs the DAG whenever it is due.

    Args:
        folder: of the logs.
        job: of which the plans are read.
        last_s: epoch seconds; what was due until then is not run.
        every_s: between runs from then on; None: as ``schedules.hour`` has it.
        say: prints a line.

    Attributes:
        runs: so far.
    """

    def __init__(
        self, folder: Path, job: str, last_s: float, every_s: float | None, say: Callable[[str], None]
    ) -> None:
        self._folder, self._job, self._last_s, self._every_s, self._say = folder, job, last_s, every_s, say
        self._ended = threading.Event()
        self.runs: list[HourRun] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it until the end of the block; one that is under way is waited for."""
        with running_beside(self._run_on, self._ended):
            yield

    def _run_on(self) -> None:
        # In production Airflow and Spark are not on the job's machines. Its processes get the priority of this thread.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEAST_PRIORITY)
        cron = load_settings().schedules.hour
        while not self._ended.wait(1.0):
            due_s: float | None = self._last_s + (self._every_s or 0.0)
            if self._every_s is None:
                due_s = find_due(cron, self._last_s, time.time())
            if due_s is not None and due_s <= time.time():
                self._last_s = due_s
                self.runs.append(run_hour(due_s, self._folder, self._job))
                self._say(describe_hour(self.runs[-1]))


def run_hour(due_s: float, folder: Path, job: str) -> HourRun:
    """Run the DAG for the full hour before a time."""
    end = floor_hour(datetime.fromtimestamp(due_s, UTC))
    log = folder / "airflow" / f"{DAG}-{datetime.fromtimestamp(due_s, UTC):%d-%H%M%S}.log"
    settings, begun_s, trouble, rows = load_settings(), time.time(), "", []
    try:
        with DagClient(airflow_environment(settings), log, lambda _: None) as client:
            client.run(DAG, {"start": format_utc(end - HOUR), "end": format_utc(end)})
        rows = json.loads((place(settings.paths.out) / "plans.json").read_text(encoding="utf-8"))
    except Exception as error:  # a run that fails is a result, and the next hour has its own
        trouble = f"{type(error).__name__}: {error}"
    answer, steps = read_plan(rows, job)
    return HourRun(due_s, begun_s, time.time() - begun_s, trouble, answer, steps)


def read_plan(rows: Sequence[Mapping[str, Any]], job: str) -> tuple[str, list[PlannedStep]]:
    """Return what ``plans.json`` says of a job: the reason of its first row, and its steps."""
    own = [row for row in rows if row["job"] == job]
    steps = [
        PlannedStep(parse_utc(row["apply_at"]).timestamp(), row["slots_from"], row["slots"])
        for row in own
        if row["status"] == "planned"
    ]
    return own[0]["reason"] if own else "", steps


def describe_hour(run: HourRun) -> str:
    """Return a line of a run."""
    due, took = f"{datetime.fromtimestamp(run.due_s, UTC):%H:%M}", f"{run.seconds:.0f} s"
    if run.trouble:
        return f"{DAG} of {due}: failed after {took}: {run.trouble.splitlines()[0]}"
    steps = ", ".join(f"{datetime.fromtimestamp(one.at_s, UTC):%H:%M} {one.before} -> {one.after}" for one in run.steps)
    return f"{DAG} of {due}: {took}; {steps or run.answer}"


def list_due_steps(runs: Sequence[HourRun], spans_s: Sequence[tuple[float, float]]) -> list[PlannedStep]:
    """Return the steps that came due within spans, each of the plan that was then the newest."""
    known = sorted((one for one in runs if not one.trouble), key=lambda one: one.ends_s)
    ends_s = [*(one.ends_s for one in known[1:]), float("inf")]
    return [
        step
        for run, until_s in zip(known, ends_s, strict=True)
        for step in run.steps
        if run.ends_s <= step.at_s < until_s and any(begin <= step.at_s <= end for begin, end in spans_s)
    ]
