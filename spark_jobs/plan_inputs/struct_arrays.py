"""Rows of one job carried in one column of its row, an array of structs, and read as NumPy columns.

A fleet has a thousand jobs with a thousand windows and bins each: as Arrow they reach NumPy without a Python object per
row or a pandas frame per job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from spark_jobs.arrow_schema import arrow_schema

PACKED = "packed"
"""A column whose cells hold several rows each; see :mod:`.packed_rows`."""
Columns = Mapping[str, npt.NDArray[Any]]
Rows = Callable[[Iterable[dict[str, Any]]], Iterable[Mapping[str, Any]]]


def map_rows(rows_of: Rows, schema: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what ``mapInArrow`` applies: for the rows of a batch some rows of a schema; a NaN becomes null.

    Args:
        rows_of: gets rows as :func:`rows_in` gives them.
        schema: DDL of what it returns; a column that a row lacks is null.  Read here: it takes a session.
    """
    arrow = arrow_schema(schema)

    def apply(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = list(rows_of(row for part in unpack(batch) for row in rows_in(part)))
            values = {name: [row.get(name) for row in made] for name in arrow.names}
            columns = [pa.array(values[one.name], one.type, from_pandas=True) for one in arrow]
            yield pa.RecordBatch.from_arrays(columns, schema=arrow)

    return apply


def unpack(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch of :func:`.packed_rows.send_packed`; a batch that is not packed as it is."""
    if PACKED not in batch.schema.names:
        yield batch
        return
    for cell in batch[PACKED]:
        yield from pa.ipc.open_stream(cell.as_buffer()).read_all().combine_chunks().to_batches()


def rows_in(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Return every row as a dict: arrays of structs as :data:`Columns` (None where null), all else as Python values."""
    columns: dict[str, Sequence[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        nested = pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)
        columns[name] = _columns_of_rows(column) if nested else column.to_pylist()
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _columns_of_rows(column: pa.ListArray) -> list[Columns | None]:
    structs = column.values
    fields = {
        structs.type.field(place).name: structs.field(place).to_numpy(zero_copy_only=False)
        for place in range(structs.type.num_fields)
    }
    bounds, known = column.offsets.to_numpy(), column.is_valid().to_numpy(zero_copy_only=False)
    return [
        {name: values[begin:end] for name, values in fields.items()} if there else None
        for begin, end, there in zip(bounds[:-1], bounds[1:], known, strict=True)
    ]
