"""Reading and writing the lake's Delta tables: created from their definition, replaced slice by slice."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.lost_input import LostInputError
from include.tables import Table

CREATED_WITHIN_S = 10
"""Delta creates a table's log and its first commit well within this time."""
_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"


class Lake:
    """The tables below one root.

    Every write replaces exactly one slice (``replaceWhere``) or merges on the table's keys, in one Delta transaction:
    a stage that is killed leaves the old slice or the new one, and may be run again.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")

    def path(self, table: Table) -> str:
        """Return where a table lives."""
        return f"{self.root}/{table.relative_path}"

    def exists(self, table: Table) -> bool:
        """Whether the table was created."""
        return bool(DeltaTable.isDeltaTable(self.spark, self.path(table)))

    def ensure(self, table: Table) -> None:
        """Create the table with its CHECK constraints in one transaction if it is not there."""
        if self.exists(table):
            return
        if self._is_unbegun(table):
            time.sleep(CREATED_WITHIN_S)  # another process may be at it
            if not self._is_unbegun(table):
                return
            system, log = self._log(table)
            system.delete(log, True)
        builder = DeltaTable.createIfNotExists(self.spark).location(self.path(table))
        for column, kind in table.columns.items():
            builder = builder.addColumn(column, kind)
        for name, expression in table.checks.items():
            builder = builder.property(f"delta.constraints.{name}", expression)
        # Least and largest values, by default of every column, take as long as the checks; rows are sought by partition
        # and key, and in a file of a partition, which holds every job, those of the keys tell nothing.
        if table.partition_by:
            builder = builder.partitionedBy(*table.partition_by).property("delta.dataSkippingNumIndexedCols", "0")
        else:
            builder = builder.property("delta.dataSkippingStatsColumns", ",".join(table.keys))
        builder.execute()

    def prepare(self, tables: Iterable[Table]) -> None:
        """Create the tables that are not there and have Delta read the logs of the others."""
        for table in tables:
            self.ensure(table)
            self.read(table)

    def _is_unbegun(self, table: Table) -> bool:
        """Whether there is a log without a commit, as a killed creation leaves it: Delta cannot go on from there."""
        system, log = self._log(table)
        if not system.exists(log):
            return False
        held = {status.getPath().getName(): status for status in system.listStatus(log)}
        staged = held.pop("_staged_commits", None)
        # A commit that was not finished has a name that starts with a dot.
        return all(name.startswith(".") for name in held) and not (staged and system.listStatus(staged.getPath()))

    def _log(self, table: Table) -> tuple[Any, Any]:
        """Return Hadoop's file system and path of a table's log."""
        context = cast("Any", self.spark.sparkContext)
        log = context._jvm.org.apache.hadoop.fs.Path(f"{self.path(table)}/_delta_log")
        return log.getFileSystem(context._jsc.hadoopConfiguration()), log

    def read(self, table: Table, version: int | None = None) -> DataFrame:
        """Read a table, or an earlier Delta version of it; one that was never written reads as empty.

        A column that came with a later release is null in a table that was written before.
        """
        if not self.exists(table):
            return empty(self.spark, table.columns)
        reader = self.spark.read.format("delta")
        result = (reader if version is None else reader.option("versionAsOf", version)).load(self.path(table))
        missing = [name for name in table.columns if name not in result.columns]
        return result.withColumns({name: F.lit(None).cast(table.columns[name]) for name in missing})

    def version(self, table: Table) -> int | None:
        """Return the table's current Delta version, None when it does not exist."""
        if not self.exists(table):
            return None
        row = DeltaTable.forPath(self.spark, self.path(table)).history(1).select("version").first()
        return int(row["version"]) if row else None

    def replace(self, table: Table, rows: DataFrame, where: str) -> None:
        """Replace the slice that ``where`` describes with ``rows`` (all of which must satisfy it)."""
        self.ensure(table)
        writer = rows.select(*table.columns).write.format("delta").mode("overwrite")
        writer.option("mergeSchema", "true").option("replaceWhere", where).save(self.path(table))

    def require_empty(self, table: Table, where: str) -> None:
        """Refuse to replace a slice by nothing, for which there may be no input any more.

        Raises:
            LostInputError: the slice has rows.
        """
        if not self.read(table).where(where).isEmpty():
            raise LostInputError(
                f"{table.name} has rows where {where}, and from the tables as they are now there would be none: "
                f"nothing was replaced; see that {self.root} is the lake that was meant, and whole"
            )


@contextmanager
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Queries inside are planned once, not again after each shuffle as adaptive execution does.

    With many small shuffles a query is then one Spark job instead of a dozen, and a checkpoint keeps what is known of
    its partitions, so that later groupings need no shuffle. As many partitions as there are cores at most: each task
    writes the code of its projections again. The settings are the whole session's.
    """
    adaptive, partitions = spark.conf.get(_ADAPTIVE) or "true", spark.conf.get(_PARTITIONS) or "200"
    spark.conf.set(_ADAPTIVE, "false")
    spark.conf.set(_PARTITIONS, str(min(int(partitions), spark.sparkContext.defaultParallelism)))
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, adaptive)
        spark.conf.set(_PARTITIONS, partitions)


def empty(spark: SparkSession, columns: Mapping[str, str]) -> DataFrame:
    """Return no rows of the given columns.

    Unlike ``createDataFrame([])`` it starts no Python worker, and the optimizer drops it from unions and joins.
    """
    return spark.range(1).select(*[F.lit(None).cast(kind).alias(column) for column, kind in columns.items()]).limit(0)


def rows_of(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> DataFrame:
    """Return a few rows that the driver made as a frame; a column that a row lacks is null.

    They travel as Arrow: a list of rows would start a Python worker to be read back.
    """
    if not rows:
        return empty(spark, columns)
    table = pa.Table.from_pylist([{column: row.get(column) for column in columns} for row in rows])
    return spark.createDataFrame(table).select(*[F.col(column).cast(kind) for column, kind in columns.items()])


def date_hour_columns(timestamp: str) -> list[Column]:
    """Return the partition columns ``date`` and ``hour`` of a timestamp column."""
    return [F.to_date(timestamp).alias("date"), F.hour(timestamp).alias("hour")]
