"""The sources that a job's newest graph has, from few rows a job, in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from include.domain.finished_operators import FINISHED
from include.flink.job_states import BATCH
from include.tables import JOB_GRAPHS, JOBS
from spark_jobs.by_job import Job
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import LOOKBACK
from spark_jobs.plan_inputs.newest_of_jobs import list_graphs, list_job_states


def read_current_sources(lake: Lake, as_of: datetime) -> dict[Job, frozenset[str]]:
    """Return the sources of each job that was seen within the lookback before a time; see :func:`list_sources`."""
    since, order = as_of - LOOKBACK, ("date", "hour")
    return list_sources(*(read_newest_rows(lake, table, since, as_of, order=order) for table in (JOB_GRAPHS, JOBS)))


def list_sources(graphs: pa.Table, jobs: pa.Table) -> dict[Job, frozenset[str]]:
    """Return the sources of each job's newest graph that may send more; a job without a graph has no entry.

    None of a job that has ended, or of a batch job: what is left of its work is no load to be forecast. The rows, of
    silver.job_graphs and silver.jobs, are of each job's newest hour.
    """
    sources = {
        job: frozenset(
            one["operator"] for one in row["operators"] if one.get("upstream") == [] and one.get("status") != FINISHED
        )
        for job, row in list_graphs(graphs).items()
    }
    over = [
        job for job, row in list_job_states(jobs).items() if row["ended_at_s"] is not None or row["job_type"] == BATCH
    ]
    return sources | dict.fromkeys(over, frozenset())


def is_current(sources: Mapping[Job, frozenset[str]], cluster: str, job: str, operator: str) -> bool:
    """Whether an operator is a source to forecast: one of its job's, or of a job without a recent graph."""
    own = sources.get((cluster, job))
    return own is None or operator in own
