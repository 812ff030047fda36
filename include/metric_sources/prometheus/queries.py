"""Names of Flink's metrics on a Prometheus-compatible server, and the queries for them (no I/O).

Flink's reporter names a metric ``flink_<scope>_<metric>``.  Counters, meters and gauges all come as gauges; in names
and in the values of labels, characters outside ``[a-zA-Z0-9:_]`` are replaced by ``_``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from include.flink.endpoints import JOB_METRICS, VERTEX_METRICS
from include.settings.sources import Prometheus

CHECKPOINT_METRICS = (
    "lastCheckpointCompletedTimestamp",
    "lastCompletedCheckpointId",
    "lastCheckpointDuration",
    "lastCheckpointFullSize",
)
CLUSTER_METRICS = ("taskSlotsTotal", "taskSlotsAvailable", "numRegisteredTaskManagers", "numRunningJobs")
BACKLOGS = ("pendingRecords",)
# Besides the task's own counters: what a source operator takes in, where the task counts nothing (a chained job).
COUNTERS_OF_SOURCES = ("numRecordsIn", "numRecordsOut")
_OF_SOURCES = 'operator_name=~"Source:.*"'  # as Flink begins the names of sources
# One metric of each scope that is always there: when it was scraped, the others of its target were.
CLOCK_OF_TASK, CLOCK_OF_JOB = "numRecordsIn", "numRestarts"


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries for one cluster.

    Attributes:
        tasks, jobs, cluster: metrics of each scope.
        backlogs: of source operators, those in groups of a connector's own included.
        sources: the counters of source operators.
        task_times, job_times: when the samples of a task, of a job were scraped, epoch seconds.
    """

    tasks: str
    backlogs: str
    sources: str
    jobs: str
    cluster: str
    task_times: str
    job_times: str

    @classmethod
    def of(cls, server: Prometheus) -> Queries:
        """Return the queries that the settings ask for."""
        names = server.names
        jobs = dict.fromkeys((*JOB_METRICS, *CHECKPOINT_METRICS))
        return cls(
            tasks=_select(server, names.task, VERTEX_METRICS),
            backlogs=_select(server, names.operator, (*BACKLOGS, *(f".+_{name}" for name in BACKLOGS))),
            sources=_select(server, names.operator, COUNTERS_OF_SOURCES, _OF_SOURCES),
            jobs=_select(server, names.job, jobs),
            cluster=_select(server, names.cluster, CLUSTER_METRICS),
            task_times=f"timestamp({_select(server, names.task, (CLOCK_OF_TASK,))})",
            job_times=f"timestamp({_select(server, names.job, (CLOCK_OF_JOB,))})",
        )


def _select(server: Prometheus, scope: str, metrics: Iterable[str], *matchers: str) -> str:
    wanted = tuple(metrics)
    start = f"{server.names.prefix}{scope}_"
    narrowed = (*matchers, *server.matchers)
    if len(wanted) == 1:
        return f"{start}{wanted[0]}" + (f"{{{','.join(narrowed)}}}" if narrowed else "")
    named = f'__name__=~"{start}({"|".join(wanted)})"'
    return f"{{{','.join((named, *narrowed))}}}"


def metric_of(name: str, server: Prometheus, scope: str) -> str:
    """Return Flink's name of a metric from that of its series."""
    return name.removeprefix(f"{server.names.prefix}{scope}_")
