"""silver.observations: one row per job, operator and window, with the rates of :mod:`models.observing.windows`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame

from include.tables import OBSERVATIONS
from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.job_history.known_jobs import KnownJobs
from spark_jobs.job_history.stop_effects import EFFECT_COLUMNS, SOURCE_COLUMNS, read_effects
from spark_jobs.job_history.vertex_rows import VERTEX_KEY, join_whole
from spark_jobs.job_history.vertex_windows import read_windows

_US = 1_000_000
MEASURED = OBSERVATIONS.columns | EFFECT_COLUMNS
"""Rows of windows have a ``window_start``, and those of what followed a stop a ``started_at``."""


def measure_windows(samples: DataFrame, jobs: Broadcast[KnownJobs], since_s: int | None = None) -> DataFrame:
    """Return the rows of silver.observations, and what followed stops: ``MEASURED``.

    Windows that began before ``since_s``, epoch seconds, are not wanted.
    """
    return map_batches(
        samples, lambda batches, schema: measure_observations(batches, schema, jobs.value, since_s), MEASURED
    )


def measure_observations(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, jobs: KnownJobs, since_s: int | None
) -> Iterator[pa.RecordBatch]:
    """Return what :func:`measure_windows` does of the batches of a partition."""
    read = pa.unify_schemas([schema, SOURCE_COLUMNS])
    for batch in read_windows(name_samples(batches, jobs), read, jobs.shapes, since_s):
        is_window = pc.is_valid(batch["window_start"])
        yield _complete(batch.select(schema.names).filter(is_window), jobs)
        yield from read_effects(batch.select(SOURCE_COLUMNS.names).filter(pc.invert(is_window)), jobs.stops, schema)


def name_samples(batches: Iterable[pa.RecordBatch], jobs: KnownJobs) -> Iterator[pa.RecordBatch]:
    """Return samples as :func:`spark_jobs.job_history.vertex_rows.read_vertices` reads them.

    A sample is left out where no name holds, and where it is an aggregate over fewer subtasks than ran: that is no
    measurement of its vertex.
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


def _complete(windows: pa.RecordBatch, jobs: KnownJobs) -> pa.RecordBatch:
    """Add the parallelism at the end of each window (of the last period that began before it), and its time."""
    rows, start = pa.Table.from_batches([windows]), windows["window_start"]
    ended_us = np.asarray(start.cast(pa.int64())) + _US * np.asarray(windows["window_s"], np.int64)
    run = jobs.runs.find(rows, ended_us - 1)
    made = {
        "parallelism": pa.array(np.append(jobs.parallelism, 0)[run], mask=run < 0),
        "disturbed": pa.repeat(False, len(run)),
        "date": start.cast(pa.date32()),
        "hour": pc.hour(start),
    }
    return _mark_disturbed(_replace(windows, made), jobs)


def mark_disturbed(batches: Iterable[pa.RecordBatch], schema: pa.Schema, jobs: KnownJobs) -> Iterator[pa.RecordBatch]:
    """Return rows of silver.observations, those of unsettled windows marked as disturbed; those that were stay so."""
    return (_mark_disturbed(batch.select(schema.names), jobs) for batch in batches)


def _mark_disturbed(windows: pa.RecordBatch, jobs: KnownJobs) -> pa.RecordBatch:
    start_us = np.asarray(windows["window_start"].cast(pa.int64()))
    is_unsettled = jobs.unsettled.find(pa.Table.from_batches([windows]), start_us) >= 0
    return _replace(windows, {"disturbed": pc.or_(windows["disturbed"], pa.array(is_unsettled))})


def _replace(rows: pa.RecordBatch, made: dict[str, pa.Array]) -> pa.RecordBatch:
    arrays = [made[one.name].cast(one.type) if one.name in made else rows[one.name] for one in rows.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
