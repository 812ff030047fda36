"""What is read of Spark's own log of an application: jobs, and the seconds in which a task was running."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.pipeline.pass_sizes import split_by_stage
from benchmarks.pipeline.spark_events import parse_events
from benchmarks.processes import Usage
from include.stage_names import Stage


def _task(begin_s: float, end_s: float) -> str:
    times = {"Launch Time": begin_s * 1000, "Finish Time": end_s * 1000}
    return json.dumps({"Event": "SparkListenerTaskEnd", "Task Info": times})


def test_tasks_that_run_at_a_time_are_counted_once() -> None:
    events = parse_events([_task(10, 14), _task(11, 12), _task(13, 15), _task(20, 21), '{"Event": "Other"}'])
    assert events.busy_s == pytest.approx(6.0)
    assert events.jobs == []


def test_an_application_is_split_where_a_stage_has_written_its_counts(tmp_path: Path) -> None:
    counts = tmp_path / "stages" / "ingest.json"
    counts.parent.mkdir()
    counts.touch()
    os.utime(counts, (1012.0, 1012.0))
    samples = [(1000.0 + second, 2.0 * second, (30 - second) << 30) for second in range(21)]
    usage = Usage(20.0, 30 << 30, 40.0, samples)
    ingest, plan = split_by_stage(usage, (Stage.INGEST, Stage.PLAN), tmp_path, [1001.0, 1002.0, 1015.0])
    assert ingest == {"stage": "ingest", "cpu_s": 24.0, "seconds": 12.0, "gib": 30.0, "spark_jobs": 2}
    assert plan == {"stage": "plan", "cpu_s": 16.0, "seconds": 8.0, "gib": 17.0, "spark_jobs": 1}
