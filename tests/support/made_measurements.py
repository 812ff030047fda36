"""Series of one made-up job on a grid, as if a server had given them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from include.flink.raw_format import RawRecord
from include.metric_sources.prometheus.client import QueryRange
from include.metric_sources.prometheus.graphs import GraphRegistry
from include.metric_sources.prometheus.measurements import ClusterMeasurements, JobMeasurements
from include.metric_sources.prometheus.replies import ReplyWriter
from include.metric_sources.prometheus.targets import Target

JOB, SOURCE, WORK = "a" * 32, "1" * 32, "2" * 32
NAMES = {SOURCE: "Source:_orders", WORK: "enrich"}
T0, STEP_S = 1_795_000_000 - 1_795_000_000 % 3600, 10


def grid(steps: int) -> QueryRange:
    return QueryRange(T0, T0 + (steps - 1) * STEP_S, STEP_S)


def manager(steps: int, running_s: list[float | None], restarts: list[int] | None = None, **metrics: Any) -> Target:
    """A JobManager; ``running_s``: seconds after T0 at which the run of each step began, None while it does not run."""
    times = grid(steps).times_s
    ran = [0.0 if at is None else 1000 * (second - T0 - at) for at, second in zip(running_s, times, strict=True)]
    values = {"runningTime": np.array(ran), "numRestarts": np.array(restarts or [0] * steps, np.float64)}
    values |= {name: np.array(value, np.float64) for name, value in metrics.items()}
    return Target({"job_id": JOB, "job_name": "my_orders"}, times, values)


def subtask(
    vertex: str, index: int, times: list[float | None], values: dict[str, list[float]], tm: str = "tm-1"
) -> Target:
    """One subtask; ``times``: seconds after T0 of the sample of each step."""
    at = np.array([np.nan if second is None else T0 + second for second in times])
    labels = {"job_id": JOB, "task_id": vertex, "subtask_index": str(index), "tm_id": tm, "task_name": NAMES[vertex]}
    return Target(labels, at, {name: np.array(row, np.float64) for name, row in values.items()})


def write(
    managers: list[Target],
    tasks: dict[str, list[Target]],
    steps: int,
    *,
    book: GraphRegistry | None = None,
    **options: Any,
) -> list[RawRecord]:
    """The raw lines of the job."""
    known = options.pop("known", {})
    job = JobMeasurements(JOB, "my_orders", managers, tasks)
    made = ReplyWriter("c", book or GraphRegistry(), **{"max_age_s": 15.0, **options})
    return list(made.write(ClusterMeasurements(grid(steps), {JOB: job}, {}), 0, 10**15, known))


def bodies(records: list[RawRecord], kind: str, vertex: str | None = None) -> list[tuple[float, Any]]:
    """Seconds after T0 and body of the lines of a kind."""
    return [
        (one.observed_at_ms / 1000 - T0, json.loads(one.body))
        for one in records
        if one.kind == kind and vertex in (None, one.vertex_id)
    ]


def metric_of(body: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (result,) = (one for one in body if one["id"] == name)
    return result
