"""Paths and bodies of Flink's REST API, without any I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from include.flink.source_counters import PENDING_RECORDS

# The gauges of busy, idle and back-pressured time are means over 60 s; the counters beside them give any window.
VERTEX_METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "busyTimeMsPerSecond",
    "idleTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    "accumulateBusyTimeMs",
    "accumulateIdleTimeMs",
    "accumulateBackPressuredTimeMs",
)
INPUT_WATERMARK = "currentInputWatermark"  # of a task that others feed, epoch ms; the least long without one
SOURCE_METRICS = (PENDING_RECORDS,)  # of the source operator: Flink gives them with the operator's name in front
AGGREGATES = ("min", "max", "avg", "sum", "skew")
# Nothing reads the skew, and Flink 1.18 refuses the whole request for it.
_ASKED_FOR = ("min", "max", "avg", "sum")
JOB_METRICS = (
    "numRestarts",  # rescales and failures
    "numRescales",
    "uptime",
    "runningTime",
    "restartingTime",
    "initializingTime",
    "createdTime",
    "failingTime",
    "cancellingTime",
    "deployingTime",
    "lastCheckpointDuration",
    "lastCheckpointSize",
    "lastCheckpointRestoreTimestamp",
    "numberOfCompletedCheckpoints",
    "numberOfFailedCheckpoints",
)


def job_path(job_id: str, leaf: str = "") -> str:
    """Return ``/jobs/:jobid[/leaf]``."""
    return f"/jobs/{job_id}/{leaf}" if leaf else f"/jobs/{job_id}"


def job_metrics_path(job_id: str, names: Iterable[str] = JOB_METRICS) -> str:
    """Return the path of a job's metrics."""
    return f"/jobs/{job_id}/metrics?get={_join_names(names)}"


def task_manager_metrics_path(names: Iterable[str]) -> str:
    """Return the path of metrics aggregated over all TaskManagers."""
    return f"/taskmanagers/metrics?get={_join_names(names)}&agg=min,max"


def vertex_metrics_path(job_id: str, vertex_id: str, names: Iterable[str] = VERTEX_METRICS) -> str:
    """Return the path of metrics aggregated over a vertex's subtasks."""
    return f"{vertex_metric_names_path(job_id, vertex_id)}?get={_join_names(names)}&agg={','.join(_ASKED_FOR)}"


def vertex_metric_names_path(job_id: str, vertex_id: str) -> str:
    """Return the path that lists which metrics a vertex's subtasks have."""
    return f"/jobs/{job_id}/vertices/{vertex_id}/subtasks/metrics"


def requirements_body(upper_bounds: Mapping[str, int], lower_bounds: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the body of PUT ``/jobs/:jobid/resource-requirements``.

    A lower bound that nobody has set is 1: Flink answers 200 and then does nothing when the lower bound exceeds the
    free slots, whereas with 1 it runs at what fits, keeps the job alive, and moves up by itself when slots appear. That
    the parallelism wanted was reached is therefore confirmed afterwards, never assumed. The upper bounds must name
    every vertex of the job, else Flink refuses.
    """
    lower = lower_bounds or {}
    return {
        vertex: {"parallelism": {"lowerBound": lower.get(vertex, 1), "upperBound": bound}}
        for vertex, bound in sorted(upper_bounds.items())
    }


def available(wanted: Iterable[str], existing: Iterable[str]) -> list[str]:
    """Return those existing names that equal a wanted one or end in ``.<wanted>`` (an operator's metric).

    Flink answers ``[]`` for the whole request when a single name does not exist on the vertex.
    """
    names = set(existing)
    result: list[str] = []
    for want in wanted:
        result += [want] if want in names else sorted(name for name in names if name.endswith(f".{want}"))
    return result


def sources_of(job: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the vertices that nothing feeds, from the plan that ``/jobs/:jobid`` carries."""
    plan = job.get("plan")
    nodes = plan.get("nodes") if isinstance(plan, dict) else None
    known = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return frozenset(str(node.get("id")) for node in known if not node.get("inputs"))


def _join_names(names: Iterable[str]) -> str:
    return ",".join(map(_quote, names))


@lru_cache(maxsize=4096)
def _quote(name: str) -> str:
    return quote(name, safe="._-")
