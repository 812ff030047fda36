"""What a Python worker does with rows of vertices: windows, and the samples of sources, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from models.arrays import Ints
from models.observing.samples import build_samples
from models.observing.source_samples import read_source_samples
from models.observing.windows import build_windows, find_superseded
from spark_jobs.job_history.vertex_rows import VertexRows, read_vertices

_MEASURES = {
    "processing_rate_per_s": "observed_processing_rate_per_s",
    "output_rate_per_s": "observed_output_rate_per_s",
}
_Columns = Mapping[str, npt.NDArray[np.generic]]


def read_windows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, since_s: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the windows of rows as rows of ``schema``, one for each operator and window.

    Args:
        batches: of :func:`spark_jobs.job_history.samples.build_samples`.
        schema: columns of silver.observations.
        since_s: windows that began before, epoch seconds, are not wanted; None for no bound.
    """
    for rows in read_vertices(batches):
        windows = build_windows(build_samples(rows.polls, rows.vertices), rows.vertices)
        is_wanted = ~find_superseded(windows, rows.operator[windows.vertex])
        if since_s is not None:
            is_wanted &= windows.start_s >= since_s
        unique = windows.of(is_wanted)
        columns = {
            "window_start": 1_000_000 * unique.start_s,
            "samples": unique.samples,
            "target_is_lower_bound": unique.target_is_lower_bound,
            **{_MEASURES.get(name, name): values for name, values in unique.measures.items()},
        }
        yield _make_batch(rows, unique.vertex, columns, schema)


def read_sources(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return the samples of sources that show their backlog as rows of ``schema``.

    Args:
        batches: of :func:`spark_jobs.job_history.samples.build_samples`.
        schema: names of ``VERTEX_KEY``, and ``observed_at, since_last_s, lag_s, target_per_s, taken_total, pending``.
    """
    for rows in read_vertices(batches):
        samples = build_samples(rows.polls, rows.vertices)
        sources = read_source_samples(samples, rows.vertices)
        columns = {
            "observed_at": samples.polls.at_us[sources.place],
            "since_last_s": samples.since_last_s[sources.place],
            "lag_s": sources.lag_s,
            "target_per_s": sources.target_per_s,
            "taken_total": sources.taken_total,
            "pending": sources.pending,
        }
        yield _make_batch(rows, samples.polls.vertex[sources.place], columns, schema)


def _make_batch(rows: VertexRows, vertex: Ints, columns: _Columns, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a schema: the keys of vertices, and columns in which NaN is null."""
    keys = rows.keys.take(pa.array(vertex))
    arrays = [
        pa.array(columns[field.name], from_pandas=True).cast(field.type)
        if field.name in columns
        else keys.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
