"""Rows of :func:`spark_jobs.job_history.sample_placement.build_samples` from Arrow to NumPy, whole jobs at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.domain.operator_matching import CHAINED
from models.arrays import Bools, Ints
from models.observing.metric_table import COLUMNS
from models.observing.samples import Polls, Vertices

JOB_KEY = ("cluster", "job")
OPERATOR_KEY = (*JOB_KEY, "operator")
VERTEX_KEY = (*OPERATOR_KEY, "job_id", "vertex_id", "is_source", "window_s")


@dataclass(frozen=True, slots=True)
class VertexRows:
    """The rows of V vertices of whole jobs.

    Attributes:
        keys: V rows of ``VERTEX_KEY``.
        operator: (V,) a number for each operator.
        polls: what the rows hold.
        vertices: (V,) what they are.
    """

    keys: pa.RecordBatch
    operator: Ints
    polls: Polls
    vertices: Vertices


def read_vertices(batches: Iterable[pa.RecordBatch]) -> Iterator[VertexRows]:
    """Return rows, a batch and what of its first job came before at a time."""
    return (_read(rows) for rows in join_whole(batches, JOB_KEY))


def join_whole(batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Return batches with all rows of their keys, whose rows follow each other: a batch may end among them."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.concat_batches([*held, batch])
        begins = np.flatnonzero(_find_begins(rows, key))
        if len(begins) > 1:
            yield rows.slice(0, begins[-1])
            rows = rows.slice(begins[-1])
        held = [rows]
    if held and held[0].num_rows:
        yield held[0]


def _read(rows: pa.RecordBatch) -> VertexRows:
    begins = _find_begins(rows, VERTEX_KEY)
    keys = rows.select(VERTEX_KEY).take(pa.array(np.flatnonzero(begins)))
    at_us = rows.column("observed_at").cast(pa.int64()).to_numpy()
    values = np.stack([rows.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS])
    vertices = Vertices(
        window_s=keys.column("window_s").to_numpy().astype(np.int64),
        is_source=keys.column("is_source").to_numpy(zero_copy_only=False),
        is_chained=pc.match_substring(keys.column("operator"), CHAINED).to_numpy(zero_copy_only=False),
    )
    operator = np.cumsum(_find_begins(keys, OPERATOR_KEY), dtype=np.int64)
    return VertexRows(keys, operator, Polls(np.cumsum(begins, dtype=np.int64) - 1, at_us, values), vertices)


def _find_begins(rows: pa.RecordBatch, key: Sequence[str]) -> Bools:
    """Return (n,) whether a row differs in its key from the one before."""
    result = np.ones(rows.num_rows, bool)
    result[1:] = False
    for name in key:
        column = rows.column(name)
        result[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return result
