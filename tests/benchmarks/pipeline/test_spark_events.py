"""Spark jobs and processor seconds of an application, by stage."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.pipeline.pass_sizes import split_by_stage
from benchmarks.pipeline.spark_events import read_job_starts
from benchmarks.processes import Usage
from include.stage_names import Stage


def test_jobs_of_every_application_are_counted(tmp_path: Path) -> None:
    start = {"Event": "SparkListenerJobStart", "Submission Time": 1_500}
    for name, events in {"one": [start, {"Event": "SparkListenerJobEnd"}], "two": [start]}.items():
        (tmp_path / name).write_text("".join(json.dumps(event) + "\n" for event in events))
    assert read_job_starts(tmp_path) == [1.5, 1.5]


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
