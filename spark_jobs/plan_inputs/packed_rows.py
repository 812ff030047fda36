"""Rows of the driver sent to Spark packed: several in one cell, as Arrow writes them.

Spark would turn each window of each job into a row of its own and back into Arrow for Python; packed, it passes
them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.lake import empty, frame_of
from spark_jobs.plan_inputs.struct_arrays import PACKED

_JOBS = 16
"""Jobs in a cell: few enough that all cores have work, enough that a cell is cheap."""
_SENT_BYTES = 16 * 2**20
"""Cells in one piece: what a frame of the driver holds is sent with its tasks, and one above 128 MiB is refused."""


def send_packed(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows as a frame of ``cluster`` and :data:`.struct_arrays.PACKED`.

    Args:
        spark: the session.
        rows: one per job, with a column ``cluster``, in the order of it.
    """
    cells = list(_cut(rows))
    if not cells:
        return empty(spark, {"cluster": "STRING", PACKED: "BINARY"})
    pieces: list[list[tuple[str, bytes]]] = [[]]
    for cell in cells:
        if pieces[-1] and sum(len(packed) for _, packed in pieces[-1]) + len(cell[1]) > _SENT_BYTES:
            pieces.append([])
        pieces[-1].append(cell)
    return reduce(DataFrame.union, [_frame(spark, piece) for piece in pieces])


def _frame(spark: SparkSession, cells: list[tuple[str, bytes]]) -> DataFrame:
    clusters, packed = zip(*cells, strict=True)
    return frame_of(spark, pa.table({"cluster": pa.array(clusters), PACKED: pa.array(packed, pa.binary())}))


def _cut(rows: pa.Table) -> Iterator[tuple[str, bytes]]:
    """Yield a cluster and some of its rows, packed."""
    whole, clusters = rows.combine_chunks(), rows["cluster"].to_pylist()
    begin = 0
    while begin < len(whole):
        end = begin + 1
        while end < min(len(whole), begin + _JOBS) and clusters[end] == clusters[begin]:
            end += 1
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole.slice(begin, end - begin))
        yield clusters[begin], sink.getvalue().to_pybytes()
        begin = end
