"""Few rows in the driver instead of in Spark: as Arrow, and as a frame that Spark reads without a job.

A frame that is kept as a checkpoint is read by a job each time that it is broadcast or collected; a local one is not.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.arrow_rows import arrow_schema
from include.tables import Table
from spark_jobs.lake import empty


def as_table(table: Table, rows: DataFrame) -> pa.Table:
    """Bring rows of a table to the driver, with its columns."""
    return rows.select(*table.columns).toArrow().cast(arrow_schema(table))


def from_table(spark: SparkSession, table: Table, rows: pa.Table) -> DataFrame:
    """Return rows of a table as a local frame."""
    if not len(rows):
        return empty(spark, table.columns)
    return spark.createDataFrame(rows).select(*[F.col(name).cast(kind) for name, kind in table.columns.items()])


def keep_few(rows: DataFrame, *, is_small: bool) -> DataFrame:
    """Return rows as they are now, worked out once: as a local frame when they are few, else as a checkpoint."""
    if not is_small:
        return rows.localCheckpoint()
    found = rows.toArrow()
    schema = rows.schema
    if not len(found):
        return empty(rows.sparkSession, {field.name: field.dataType.simpleString() for field in schema})
    return rows.sparkSession.createDataFrame(found, schema)
