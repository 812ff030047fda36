"""What a Python worker knows of jobs beside their metrics: the edges of each, and when its barriers went through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pyarrow as pa

from models.observing.ages import JobRows
from models.observing.clocks import find_ahead_ms
from spark_jobs.job_history.vertex_rows import VertexRows

_ID = ("cluster", "job_id")


@dataclass(slots=True)
class JobShape:
    """A job id.

    Attributes:
        feeders: vertex id -> those that feed it; None where no plan tells it.
        checkpoints: of aligned ones, time at which one was completed -> when its barriers set out, epoch milliseconds
            by the polls' clock.
        has_stopped: whether what its sources showed is wanted.
    """

    feeders: dict[str, list[str] | None] = field(default_factory=dict)
    checkpoints: dict[int, int | None] = field(default_factory=dict)
    has_stopped: bool = False


JobShapes = Mapping[tuple[str, str], JobShape]
"""(cluster, job id) -> its shape."""


def read_shapes(names: pa.Table, aligned: pa.Table, stopped: Collection[str] = ()) -> JobShapes:
    """Return the shapes of jobs, by ``cluster, job_id, vertex_id, feeders`` and the ids of those that stopped."""
    result: defaultdict[tuple[str, str], JobShape] = defaultdict(JobShape)
    for row in names.select([*_ID, "vertex_id", "feeders"]).to_pylist():
        shape = result[row["cluster"], row["job_id"]]
        shape.feeders[row["vertex_id"]], shape.has_stopped = row["feeders"], row["job_id"] in stopped
    for row in aligned.to_pylist():
        ahead_ms = find_ahead_ms([] if row["ahead_ms"] is None else [row["ahead_ms"]])
        shape = result[row["cluster"], row["job_id"]]
        shape.checkpoints[row["completed_at"] - ahead_ms] = row["triggered_at"] - ahead_ms
    return dict(result)


def list_job_rows(rows: VertexRows, shapes: JobShapes) -> Iterator[JobRows]:
    """Yield which vertices are of one job, in topological order.

    Where edges, or what some of its vertices count, are not known, each source is alone: nothing tells its buffers.
    """
    of_jobs: defaultdict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    keys = zip(*(rows.keys[name].to_pylist() for name in ("cluster", "job", "job_id", "vertex_id")), strict=True)
    for row, (*job, vertex_id) in enumerate(keys):
        of_jobs[tuple(job)][vertex_id] = row
    for (cluster, _, job_id), own in of_jobs.items():
        shape = shapes.get((cluster, job_id), JobShape())
        order = _sort_vertices(shape, own)
        if order is None:
            alone = np.flatnonzero(rows.vertices.is_source[list(own.values())])
            yield from (JobRows([list(own.values())[one]], [[]], is_whole=False) for one in alone)
        else:
            place = {vertex_id: at for at, vertex_id in enumerate(order)}
            feeders = [[place[one] for one in shape.feeders[vertex_id] or ()] for vertex_id in order]
            yield JobRows([own[vertex_id] for vertex_id in order], feeders, shape.checkpoints)


def _sort_vertices(shape: JobShape, own: Mapping[str, int]) -> list[str] | None:
    """Return the vertices in topological order; None where edges are not known, or vertices were not measured."""
    if own.keys() != shape.feeders.keys() or any(others is None for others in shape.feeders.values()):
        return None
    try:
        order = list(TopologicalSorter({one: others or () for one, others in shape.feeders.items()}).static_order())
    except CycleError:
        return None
    return order if len(order) == len(own) else None
