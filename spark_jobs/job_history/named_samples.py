"""Samples of vertices by id to rows under the names of their vertices, in a Python worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.known_jobs import KnownJobs
from spark_jobs.job_history.vertex_rows import VERTEX_KEY, join_whole


def name_samples(batches: Iterable[pa.RecordBatch], jobs: KnownJobs) -> Iterator[pa.RecordBatch]:
    """Return samples as :func:`spark_jobs.job_history.vertex_rows.read_vertices` reads them.

    A sample is left out where no name holds, and where it is an aggregate over fewer subtasks than ran: that is no
    measurement of its vertex.

    Args:
        batches: of :func:`spark_jobs.job_history.samples.place_samples`.
        jobs: all that they may be of.
    """
    for batch in join_whole(batches, ("place",)):
        rows = pa.Table.from_batches([batch])
        at_us = np.asarray(rows["observed_at"].cast(pa.int64()))
        name, run = jobs.names.find(rows, at_us), jobs.runs.find(rows, at_us)
        is_partial = (run >= 0) & (np.asarray(rows["subtasks"]) < np.append(jobs.parallelism, 0)[run])
        chosen = np.flatnonzero((name >= 0) & ~is_partial)
        vertex = jobs.vertex[name[chosen]]
        order = np.lexsort((at_us[chosen], vertex))
        keys, own = jobs.vertices.take(pa.array(vertex[order])), rows.take(pa.array(chosen[order]))
        columns = {name: (keys if name in VERTEX_KEY else own)[name] for name in (*VERTEX_KEY, "observed_at", *COLUMNS)}
        yield from pa.table(columns).combine_chunks().to_batches()
