"""Runs of jobs that raw files near an hour tell of, so that hours written apart agree on when a run began."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from include.flink.job_states import RUNNING
from include.flink.raw_format import Endpoint, hour_directory
from include.metric_sources.prometheus.job_runs import RecordedRun
from include.raw_files import KAFKA_PREFIX, is_raw_name
from include.raw_lines import DamagedFileError, read_text_lines

REACH_H = 48
_FILES = 3  # of an hour: polls of REST are a file each, and every one tells of all jobs
_MARK = f'"kind":"{Endpoint.JOB}"'


def read_runs(raw_root: Path, cluster: str, hour: datetime) -> dict[str, tuple[RecordedRun, ...]]:
    """Return job id -> its runs as the nearest files before an hour and after its start, in UTC, tell them."""
    result: dict[str, dict[int, RecordedRun]] = {}
    for files in (_nearest(raw_root, cluster, hour, -1), _nearest(raw_root, cluster, hour, 1)):
        for path in files:
            for job_id, run in _runs_in(path):
                result.setdefault(job_id, {})[run.running_ms] = run
    return {job_id: tuple(runs.values()) for job_id, runs in result.items()}


def _nearest(raw_root: Path, cluster: str, hour: datetime, direction: int) -> list[Path]:
    """Return the last files of the nearest hour before, or the first of the nearest from this hour on."""
    for offset in range(REACH_H):
        at = hour + timedelta(hours=offset if direction > 0 else -offset - 1)
        folder = hour_directory(raw_root, cluster, at.astimezone(UTC))
        files = sorted(
            path for path in folder.glob("*") if is_raw_name(path.name) and not path.name.startswith(KAFKA_PREFIX)
        )
        if files:
            return files[:_FILES] if direction > 0 else files[-_FILES:]
    return []


def _runs_in(path: Path) -> Iterator[tuple[str, RecordedRun]]:
    try:
        for line in read_text_lines(path):
            run = _run_in(line) if _MARK in line else None
            if run is not None:
                yield run
    except DamagedFileError:
        return  # ingestion names a file that cannot be read


def _run_in(line: str) -> tuple[str, RecordedRun] | None:
    try:
        record = json.loads(line)
        run = run_of(json.loads(record["body"]))
        return None if run is None else (str(record["job_id"]), run)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def run_of(reply: dict[str, Any]) -> RecordedRun | None:
    """Return the run that a reply of ``/jobs/:jobid`` tells of; None when the job does not run."""
    if reply["state"] != RUNNING or type(reply["timestamps"].get(RUNNING)) is not int:
        return None
    reported = {one["id"]: one["parallelism"] for one in reply["vertices"] if type(one.get("parallelism")) is int}
    return RecordedRun(reply["timestamps"][RUNNING], reported)
