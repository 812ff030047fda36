"""What a Python worker does with rows of vertices: windows, and the samples of sources, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from models.arrays import Bools, Ints
from models.observing.ages import LOOKBACK_WINDOWS, find_outstanding
from models.observing.outstanding import OutstandingRecords
from models.observing.samples import Samples, build_samples, count_differences
from models.observing.source_samples import read_source_samples
from models.observing.windows import build_windows, find_superseded, last_known
from spark_jobs.job_history.job_shapes import JobShapes, list_job_rows
from spark_jobs.job_history.vertex_rows import VERTEX_KEY, VertexRows, read_vertices

_MEASURES = {
    "processing_rate_per_s": "observed_processing_rate_per_s",
    "output_rate_per_s": "observed_output_rate_per_s",
}
_HOUR_US = 3_600_000_000
_Columns = Mapping[str, npt.NDArray[np.generic]]


def read_windows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, shapes: JobShapes, since_s: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the windows of rows, one for each operator and window, and what sources of jobs that stopped showed.

    The schema has the columns of silver.observations, and of :class:`models.observing.source_samples.SourceSamples`
    with ``observed_at, since_last_s``; a sample of a source has no window. Windows that began before ``since_s``, epoch
    seconds, are not wanted.
    """
    for rows in read_vertices(batches):
        samples = build_samples(rows.polls, rows.vertices)
        has_stopped = _find_stopped(rows, shapes)
        outstanding = _measure_outstanding(rows, samples, shapes, None if has_stopped.any() else since_s)
        windows = build_windows(samples, rows.vertices, outstanding.arriving_per_s)
        is_wanted = ~find_superseded(windows, rows.operator[windows.vertex])
        if since_s is not None:
            is_wanted &= windows.start_s >= since_s
        unique = windows.of(is_wanted)
        columns = {
            "window_start": 1_000_000 * unique.start_s,
            "samples": unique.samples,
            "target_is_lower_bound": unique.target_is_lower_bound,
            **{_MEASURES.get(name, name): values for name, values in unique.measures.items()},
            **{
                name: last_known(samples.polls, rows.vertices, values)[is_wanted]
                for name, values in (("outstanding_records", outstanding.records), ("age_s", outstanding.age_s))
            },
        }
        yield _make_batch(rows, unique.vertex, columns, schema)
        if has_stopped.any():
            yield _read_sources(rows, samples, outstanding, has_stopped, schema)


def _find_stopped(rows: VertexRows, shapes: JobShapes) -> Bools:
    """Return (V,) whether a vertex is of a job that stopped."""
    ids = zip(*(rows.keys[name].to_pylist() for name in ("cluster", "job_id")), strict=True)
    return np.array([one in shapes and shapes[one].has_stopped for one in ids], bool)


def _read_sources(
    rows: VertexRows, samples: Samples, outstanding: OutstandingRecords, has_stopped: Bools, schema: pa.Schema
) -> pa.RecordBatch:
    """Return the samples of sources that show their backlog, of jobs that stopped, as rows of a schema."""
    sources = read_source_samples(samples, rows.vertices)
    own = has_stopped[samples.polls.vertex[sources.place]]
    place = sources.place[own]
    columns = {
        "observed_at": samples.polls.at_us[place],
        "since_last_s": samples.since_last_s[place],
        "age_s": outstanding.age_s[place],
        "target_per_s": sources.target_per_s[own],
        "taken_total": sources.taken_total[own],
        "pending": sources.pending[own],
    }
    return _make_batch(rows, samples.polls.vertex[place], columns, schema)


def _measure_outstanding(
    rows: VertexRows, samples: Samples, shapes: JobShapes, since_s: int | None = None
) -> OutstandingRecords:
    """Return what is outstanding at each poll of a source, (n,).

    An hour looks back equally far however much was read before it: its rows are always the same.
    """
    at_us, vertex = samples.polls.at_us, samples.polls.vertex
    reach_us = LOOKBACK_WINDOWS * 1_000_000 * rows.vertices.window_s[vertex]
    result = OutstandingRecords.unknown(len(at_us))
    jobs = list(list_job_rows(rows, shapes))
    hour = at_us // _HOUR_US
    for one in np.unique(hour if since_s is None else hour[at_us >= 1_000_000 * since_s]):
        near = np.flatnonzero((hour <= one) & (at_us >= one * _HOUR_US - reach_us))
        own = find_outstanding(count_differences(samples.polls.of(near), rows.vertices), rows.vertices, jobs)
        is_own = hour[near] == one
        result.records[near[is_own]], result.age_s[near[is_own]] = own.records[is_own], own.age_s[is_own]
        result.arriving_per_s[near[is_own]] = own.arriving_per_s[is_own]
    return result


def _make_batch(rows: VertexRows, vertex: Ints, columns: _Columns, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a schema: the keys of vertices, and columns in which NaN is null; any other is null."""
    keys = rows.keys.take(pa.array(vertex))
    known = {name: keys.column(name) for name in VERTEX_KEY}
    known |= {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    arrays = [known[one.name].cast(one.type) if one.name in known else pa.nulls(len(keys), one.type) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
