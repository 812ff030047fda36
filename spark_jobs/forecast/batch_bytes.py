"""Series that travel between the driver and Spark's workers as bytes of Arrow, a row for many of them.

Spark neither takes their arrays apart nor shuffles them. Loaded by the workers: without Spark and the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pyarrow as pa

BATCH, COLUMN, KEYS = "batch", "rows", "keys"


def make_worker(
    work: Callable[[pd.DataFrame], pd.DataFrame], schema: pa.Schema, list_keys: Callable[[pa.Table], pa.Table]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that Spark applies to rows of :data:`COLUMN`: each is a table of some batches.

    Args:
        work: applied to each batch, the rows of one value of :data:`BATCH`.
        schema: of what it returns.
        list_keys: of that, what the driver needs; beside it as :data:`KEYS`.
    """

    def apply(packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in packed:
            made = [work_on(from_bytes(one.as_buffer())) for one in rows.column(0)]
            cells = {COLUMN: made, KEYS: map(list_keys, made)}
            yield pa.record_batch({name: pa.array(map(to_bytes, own), pa.binary()) for name, own in cells.items()})

    def work_on(part: pa.Table) -> pa.Table:
        batches = part.to_pandas().groupby(BATCH)
        made = [work(own.drop(columns=BATCH).reset_index(drop=True)) for _, own in batches]
        return pa.concat_tables(pa.Table.from_pandas(one, schema, preserve_index=False) for one in made)

    return apply


def make_lister(
    list_rows: Callable[[pa.Table], pa.Table],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that Spark applies to the same rows: each table becomes the rows that are listed of it."""

    def apply(packed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in packed:
            for one in rows.column(COLUMN):
                yield from list_rows(from_bytes(one.as_buffer())).to_batches()

    return apply


def to_bytes(rows: pa.Table) -> bytes:
    """Return rows as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def from_bytes(packed: pa.Buffer) -> pa.Table:
    """Return the rows of a stream of Arrow."""
    return pa.ipc.open_stream(packed).read_all()
