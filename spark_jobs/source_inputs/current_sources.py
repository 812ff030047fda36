"""The sources that a job's newest graph has, from few rows a job, in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from include.domain.finished_operators import FINISHED
from include.flink.job_states import BATCH
from include.tables import JOB_GRAPHS, JOBS
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import LOOKBACK

JobName = tuple[str, str]
_HOUR = ("date", "hour")
_OF_GRAPH = ("cluster", "job", *_HOUR, "observed_at", "job_id", "operator", "upstream", "status")
_OF_JOB = ("cluster", "job", *_HOUR, "observed_at", "job_type", "ended_at")


def read_current_sources(lake: Lake, as_of: datetime) -> dict[JobName, frozenset[str]]:
    """Return the sources of each job that was seen within the lookback before a time; see :func:`list_sources`."""
    graphs, jobs = (read_newest_rows(lake, table, as_of - LOOKBACK, as_of, order=_HOUR) for table in (JOB_GRAPHS, JOBS))
    return list_sources(graphs, jobs)


def list_sources(graphs: pa.Table, jobs: pa.Table) -> dict[JobName, frozenset[str]]:
    """Return the sources of each job's newest graph that may send more; a job without a graph has no entry.

    None of a job that has ended, or of a batch job: what is left of its work is no load to be forecast.

    Args:
        graphs: rows of silver.job_graphs of each job's newest hour.
        jobs: rows of silver.jobs of each job's newest hour.
    """
    last = _find_newest(graphs.select(["cluster", "job", "observed_at", "job_id"]).to_pylist(), "job_id")
    sources: dict[JobName, set[str]] = {}
    for row in graphs.select(_OF_GRAPH).to_pylist():
        job = row["cluster"], row["job"]
        if row["job_id"] != last[job]["job_id"]:
            continue  # a resubmitted job has a new id; operators of the old one are left out
        own = sources.setdefault(job, set())
        if row["upstream"] is not None and not row["upstream"] and row["status"] != FINISHED:
            own.add(row["operator"])
    for job, row in _find_newest(jobs.select(_OF_JOB).to_pylist()).items():
        if row["ended_at"] is not None or row["job_type"] == BATCH:
            sources[job] = set()
    return {job: frozenset(own) for job, own in sources.items()}


def is_current(sources: Mapping[JobName, frozenset[str]], cluster: str, job: str, operator: str) -> bool:
    """Whether an operator is a source to forecast: one of its job's, or of a job without a recent graph."""
    own = sources.get((cluster, job))
    return own is None or operator in own


def _find_newest(rows: Iterable[dict[str, Any]], *ties: str) -> dict[JobName, dict[str, Any]]:
    """Return of each job the row that was observed last; of equal ones the one with the greatest of some columns."""
    result: dict[JobName, dict[str, Any]] = {}
    for row in rows:
        job = row["cluster"], row["job"]
        order = (row["observed_at"], *(row[name] or "" for name in ties))
        before = result.get(job)
        if before is None or order >= (before["observed_at"], *(before[name] or "" for name in ties)):
            result[job] = row
    return result
