"""Objects as a frame: one in each row, pickled, which Spark passes on as it is.

Spark would turn each window of each job into a row of its own and back into Arrow for Python. Loaded by the workers:
without the lake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame

from include.arrow_rows import arrow_columns

PACKED = "packed"
COLUMNS = {PACKED: "BINARY"}
_SPARK: Any = CPickleSerializer()  # what Spark itself brings objects to and from workers with


def pack(objects: Iterable[object]) -> pa.RecordBatch:
    """Return objects as rows."""
    return pa.record_batch({PACKED: pack_cells(objects)})


def pack_cells(objects: Iterable[object]) -> pa.Array:
    """Return objects as cells of a column."""
    return pa.array(map(_SPARK.dumps, objects), pa.binary())


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the objects of rows: written by this application, a moment ago."""
    return (_SPARK.loads(cell.as_py()) for batch in batches for cell in batch[PACKED])


def map_objects(objects: DataFrame, work: Callable[[Iterator[Any]], Iterable[object]]) -> DataFrame:
    """Return the objects that ``work`` makes of those of each partition."""
    return map_to_rows(objects, lambda given: (pack([one]) for one in work(given)), COLUMNS)


def map_to_rows(
    objects: DataFrame, work: Callable[[Iterator[Any]], Iterator[pa.RecordBatch]], columns: Mapping[str, str]
) -> DataFrame:
    """Return the rows that ``work`` makes of the objects of each partition; ``columns``: name -> type, as SQL."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return objects.mapInArrow(lambda batches: work(unpack(batches)), ddl)


def collect_objects(objects: DataFrame) -> list[Any]:
    """Bring objects to the driver."""
    return list(unpack(objects.toArrow().to_batches()))


def arrow_batch(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> pa.RecordBatch:
    """Return rows as Arrow; a column that a row lacks is null, and so is a NaN."""
    schema, made = arrow_columns(columns), list(rows)
    arrays = [pa.array([row.get(one.name) for row in made], one.type, from_pandas=True) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
