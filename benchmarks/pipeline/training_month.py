"""A training of a fleet with a month of windows: CPU seconds of the stage's whole process tree, and its memory.

Set-up, not timed: tables of ``jobs`` chains of operators as ingestion writes them. Then the stage as ``spark-submit``:
first on what is there, and once more a night later, when a day of windows has come.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, environment, submit
from benchmarks.pipeline.made_fleet import complete_table
from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.stage_names import Stage
from include.tables import JOB_GRAPHS, OBSERVATIONS, RESCALES
from models.arrays import Floats

DAYS, DAY = 28, timedelta(days=1)
END = datetime(2026, 11, 20, tzinfo=UTC)
EVENTS = 6
"""Rescales and failures of each job in the month."""


def run(work: Path, jobs: int = 100, operators: int = 8, window_s: int = 300) -> list[Measurement]:
    """Measure two trainings, a night apart.

    Args:
        work: an empty directory; everything is written below it.
        jobs: size of the fleet.
        operators: of each job.
        window_s: length of the windows; they are told of each operator.
    """
    lake, fleet = str(work / "lake"), Fleet(jobs, operators, window_s)
    size = f"{jobs} jobs x {operators} operators, {DAYS} days of windows of {window_s} s"
    result = []
    with environment(work):
        fleet.write_known(lake)
        for back in range(DAYS, 0, -1):
            fleet.write_day(lake, END - back * DAY)
        for name, end in (("first", END), ("a night later", END + DAY)):
            if end > END:
                fleet.write_day(lake, END)
            usage = submit(Stage.TRAIN, work, end)
            result += [
                Measurement(f"training, {name}, {size}", usage.cpu_s, "CPU s"),
                Measurement(f"training, {name}, peak memory", usage.peak_bytes / 2**30, "GiB"),
            ]
    return result


class Fleet:
    """Chains whose operators are as fast as g p / (1 + a (p - 1)), under a daily wave, at other slots each quarter day.

    Args:
        jobs: how many.
        operators: of each.
        window_s: length of the windows.
    """

    def __init__(self, jobs: int, operators: int, window_s: int) -> None:
        draws = np.random.default_rng(41)
        self.window_s = window_s
        self.jobs = [f"job-{one:04}" for one in range(jobs)]
        self.names = ["Source: events", *(f"stage-{one}" for one in range(1, operators))]
        self.first_per_s: Floats = draws.uniform(500.0, 5_000.0, (jobs, operators))
        self.contention: Floats = draws.uniform(0.005, 0.06, (jobs, operators))
        self.draws = draws

    def write_known(self, lake: str) -> None:
        """Write the graph of each job, and its rescales and failures."""
        at = END - timedelta(hours=1)
        graphs = [
            {
                "cluster": CLUSTER,
                "job": job,
                "operator": name,
                "vertex_id": f"{place:032x}",
                "position": place,
                "upstream": self.names[max(place - 1, 0) : place],
                "parallelism": 4,
                "max_parallelism": 128,
                "observed_at": at,
                "date": at.date(),
                "hour": at.hour,
            }
            for job in self.jobs
            for place, name in enumerate(self.names)
        ]
        LakeTable(lake, JOB_GRAPHS).append_arrow(arrow_rows(JOB_GRAPHS, graphs))
        events = [
            self._event(job, number, END - timedelta(days=1 + 4 * number, hours=place % 24))
            for place, job in enumerate(self.jobs)
            for number in range(EVENTS)
        ]
        LakeTable(lake, RESCALES).append_arrow(arrow_rows(RESCALES, events))

    def _event(self, job: str, number: int, at: datetime) -> dict[str, Any]:
        is_rescale, down_s = number % 2 == 0, 20.0 + 5.0 * number
        return {
            "cluster": CLUSTER,
            "job": job,
            "started_at": at,
            "running_at": at + timedelta(seconds=down_s),
            "kind": "rescale" if is_rescale else "restart",
            "cause_kind": "rescale" if is_rescale else "job_failure",
            "parallelism_before": dict.fromkeys(self.names, 4),
            "parallelism_after": dict.fromkeys(self.names, 4),
            "downtime_s": down_s,
            "catch_up_s": 90.0,
            "load_per_s": 900.0,
            "load_after_per_s": 900.0,
            "checkpoint_age_s": 10.0,
            "date": at.date(),
            "hour": at.hour,
        }

    def write_day(self, lake: str, day: datetime) -> None:
        """Write the windows of all operators of a day, a file per hour as ingestion leaves them."""
        starts_s = int(day.timestamp()) + np.arange(0, 86_400, self.window_s)
        job, operator, window = (one.ravel() for one in np.indices((*self.first_per_s.shape, len(starts_s))))
        at_s, count = starts_s[window], len(window)
        parallelism = 2 + (at_s // 21_600 + job) % 7
        first, contention = self.first_per_s[job, operator], self.contention[job, operator]
        true_per_s = first * parallelism / (1.0 + contention * (parallelism - 1))
        slowest = (self.first_per_s / (1.0 + self.contention)).min(axis=1)[job]
        load = slowest * parallelism * (0.5 + 0.2 * np.sin(2.0 * np.pi * (at_s / 86_400 + 0.1 * (job % 10))))
        true_per_s *= 1.0 + 0.03 * self.draws.standard_normal(count)
        busy = np.minimum(load / true_per_s, 1.0)
        is_source = operator == 0
        columns: dict[str, Any] = {
            "cluster": pa.array([CLUSTER]).take(pa.array(np.zeros(count, np.int64))),
            "job": pa.array(self.jobs).take(pa.array(job)),
            "operator": pa.array(self.names).take(pa.array(operator)),
            "vertex_id": pa.array([f"{one:032x}" for one in range(len(self.names))]).take(pa.array(operator)),
            "window_start": pa.array(at_s * 1_000_000),
            "window_s": np.full(count, self.window_s),
            "parallelism": parallelism,
            "is_source": is_source,
            "observed_processing_rate_per_s": busy * true_per_s,
            "observed_output_rate_per_s": busy * true_per_s,
            "true_processing_rate_per_s": true_per_s,
            "true_output_rate_per_s": true_per_s,
            "target_data_rate_per_s": pa.array(load, mask=~is_source),
            "target_is_lower_bound": pa.array(np.zeros(count, bool), mask=~is_source),
            "busy_share": busy,
            "busy_share_max": np.minimum(1.0, busy * 1.05),
            "idle_share": 1.0 - busy,
            "backpressured_share": np.zeros(count),
            "selectivity": np.ones(count),
            "pending_records": pa.array(100.0 * busy, mask=~is_source),
            "age_s": pa.array(0.05 / (1.02 - busy), mask=~is_source),
            "samples": np.full(count, 5),
            "disturbed": at_s % 21_600 < 600,  # the ten minutes after a job was given other slots
            "date": pa.array([day.date()]).take(pa.array(np.zeros(count, np.int64))),
            "hour": at_s // 3600 % 24,
        }
        LakeTable(lake, OBSERVATIONS).append_arrow(complete_table(OBSERVATIONS, columns, count))
