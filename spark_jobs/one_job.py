"""Several small results worked out by one Spark job instead of one job each.

A job costs tens of milliseconds of planning, scheduling and waiting however few rows it gives, and results that come
from the same rows share what was shuffled for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType


def collect_together(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """Bring the few rows of several frames to the driver by one job (and one more for each broadcast in them).

    Inside :func:`spark_jobs.lake.planned_once`: adaptive execution takes a job for each shuffle.
    """
    # In an array: a row that is null would have null columns, also those that Spark knows as never null.
    kinds = [ArrayType(rows.schema) for rows in frames.values()]

    def pack(place: int, rows: DataFrame) -> DataFrame:
        packed = F.array(F.struct(*[F.col(f"`{name}`") for name in rows.columns]))
        columns = [packed if one == place else F.lit(None).cast(kind) for one, kind in enumerate(kinds)]
        return rows.select(*[column.alias(f"rows_{one}") for one, column in enumerate(columns)])

    made = reduce(DataFrame.union, [pack(place, rows) for place, rows in enumerate(frames.values())]).toArrow()
    return {name: _unpack(made.column(place)) for place, name in enumerate(frames)}


def _unpack(packed: pa.ChunkedArray) -> pa.Table:
    """Return the rows of one frame; those of the others are null."""
    parts = [chunk.flatten() for chunk in packed.chunks]
    fields = list(packed.type.value_type)
    columns = [pa.chunked_array([part.field(field.name) for part in parts], field.type) for field in fields]
    return pa.table(columns, schema=pa.schema(fields))
