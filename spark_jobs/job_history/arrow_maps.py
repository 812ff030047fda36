"""Functions of Arrow batches over Spark frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_jobs.arrow_schema import arrow_schema

MapBatches = Callable[[Iterable[pa.RecordBatch], pa.Schema], Iterator[pa.RecordBatch]]


def map_batches(rows: DataFrame, apply: MapBatches, columns: Mapping[str, str]) -> DataFrame:
    """Return what a function makes of the batches of each partition, by the schema of columns; a worker imports it."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    schema = arrow_schema(ddl)
    return rows.mapInArrow(lambda batches: apply(batches, schema), ddl)
