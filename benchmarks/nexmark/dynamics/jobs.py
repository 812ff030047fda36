"""The jobs of a run: two queries as SQL, and a DataStream job with a side output, whose buffers fill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.local_flink.job_client import JobClient
from lab.local_flink.load import ENRICH, LoadOptions, LoadTopology, submit_load
from lab.local_flink.nexmark import QUERIES, submit_query

AGE = "ageMs"
"""Gauge before the sink: age of the record that passed last, ms; -1 before the first (``AgeGauge.java``)."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job.

    Attributes:
        name: of the job in Flink.
        costly: with what the name of its costly vertex begins.
        full_per_s: load of the job that one subtask of it can just process, records/s.
        shows_pending: whether its source reports a backlog.
    """

    name: str
    costly: str
    full_per_s: float
    shows_pending: bool = True


JOBS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("q2", "Source: events", 1030.0),
        Job("q3", "Join", 780.0),
        Job("buffers", ENRICH, 270.0),
        Job("q3-blind", "Join", 780.0, shows_pending=False),
    )
}
_WAIT_US = 4000  # of `enrich`: 250 records/s a subtask, next to no processor time


def submit(client: JobClient, folder: Path, jar_id: str, job: Job, trace: tuple[tuple[int, float], ...]) -> str:
    """Start a job; returns its id.

    Args:
        client: of the cluster.
        folder: that its JobManager sees.
        jar_id: of Nexmark's queries, uploaded.
        job: which.
        trace: of its load, from :func:`benchmarks.nexmark.dynamics.schedule.make_trace`.
    """
    if job.name == "buffers":
        load = LoadOptions(
            job.name, trace=trace, compression=1.0, cost_us=10, wait_us=_WAIT_US, form=LoadTopology.SIDE_OUTPUTS
        )
        return submit_load(client, folder, load)
    query = QUERIES[job.name.partition("-")[0]]
    options = replace(query.options(trace, job.name), shows_pending=job.shows_pending)
    return submit_query(client, folder, options, jar_id=jar_id)


def find_costly(job: Job, details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the costly vertex of a job's details."""
    return next(vertex for vertex in details["vertices"] if vertex["name"].startswith(job.costly))


class AgeReader:
    """The true age of what reaches the sink of a job."""

    def __init__(self, client: JobClient, job_id: str) -> None:
        self._client, self._job_id = client, job_id
        self._path = self._names = ""

    def read_s(self, details: Mapping[str, Any]) -> float:
        """Return the mean over the subtasks, s; NaN where no record has passed yet.

        Args:
            details: of the job.
        """
        if not self._names:
            for vertex in details["vertices"]:
                path = f"/jobs/{self._job_id}/vertices/{vertex['id']}/subtasks/metrics"
                names = [one["id"] for one in self._client.transport.get_json(path) if one["id"].endswith(AGE)]
                if names:
                    self._path, self._names = path, ",".join(names)
        if not self._names:
            return math.nan
        replies = self._client.transport.get_json(f"{self._path}?get={self._names}&agg=avg,min")
        ages = [float(one["avg"]) / 1000.0 for one in replies if float(one["min"]) >= 0]
        return sum(ages) / len(ages) if ages else math.nan
