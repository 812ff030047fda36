"""Reading and writing the lake's Delta tables: created from their definition, replaced slice by slice."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from functools import reduce
from typing import Any, cast

import pyarrow as pa
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tenacity import Retrying, before_sleep_log, retry_if_exception_type, stop_after_attempt, wait_random

from include.arrow_rows import arrow_schema
from include.lake_table import LakeTable
from include.lost_input import LostInputError
from include.object_store import local_folder
from include.table_creation import ensure_table
from include.tables import Table
from spark_jobs.new_rows import commit_rows
from spark_jobs.packed_objects import COLUMNS, pack

log = logging.getLogger(__name__)
_ATTEMPTS = 15
_CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConcurrentDeleteDeleteException,
    ConcurrentWriteException,
    MetadataChangedException,  # another added a column that came with this release
    ProtocolChangedException,
)
_SENT_BYTES = 16 * 2**20
"""Objects in one piece: what a frame of the driver holds is sent with its tasks, and one above 128 MiB is refused."""
_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


class Lake:
    """The tables below one root.

    Every write replaces exactly one slice (``replaceWhere``) or merges on the table's keys, in one Delta transaction:
    a stage that is killed leaves the old slice or the new one, and may be run again.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")
        self._is_local = local_folder(self.root) is not None
        self._known = set[str]()  # tables of a bucket that are there: each time that one is asked for is a request
        self._few: dict[str, LakeTable] = {}

    def path(self, table: Table) -> str:
        """Return where a table lives."""
        return f"{self.root}/{table.relative_path}"

    def exists(self, table: Table) -> bool:
        """Whether the table was created."""
        if table.name in self._known:
            return True
        result = DeltaTable.is_deltatable(self.path(table))
        if result and not self._is_local:
            self._known.add(table.name)
        return result

    def ensure(self, table: Table) -> None:
        """Create the table with its CHECK constraints in one transaction if it is not there."""
        if not self.exists(table):
            ensure_table(self.root, table)

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

    def scan(self, table: Table, start: datetime, end: datetime) -> DataFrame:
        """Return the rows of the files that may have some of the hours ``[start, end)``.

        The driver finds them in the log: where Spark reads it, it takes two jobs at least.
        """
        files = self.few(table).read_files_by_hour()
        wanted = [own for (day, hour), own in files.items() if start <= datetime.combine(day, time(hour), UTC) < end]
        paths = sorted({f"{self.path(table)}/{one}" for own in wanted for one in own})
        if not paths:
            return empty(self.spark, table.columns)
        reader = self.spark.read.schema(", ".join(f"{name} {kind}" for name, kind in table.columns.items()))
        return reader.option("basePath", self.path(table)).parquet(*paths).select(*table.columns)

    def version(self, table: Table) -> int | None:
        """Return the table's current Delta version, None when it does not exist."""
        return self.few(table).read_version()

    def few(self, table: Table, version: int | None = None) -> LakeTable:
        """Return a table of few rows a job, or an earlier version of it, to be read and written without a Spark job.

        The newest one is the same object each time: its log is read once, and then only what was committed since.
        """
        if version is not None:
            return LakeTable(self.root, table, version)
        return self._few.setdefault(table.name, LakeTable(self.root, table))

    def replace(self, table: Table, rows: DataFrame | pa.Table, where: str) -> None:
        """Replace the slice that ``where`` describes with ``rows`` (all of which must satisfy it).

        The files of a day are shared by its hours: where another commits one of the same day meanwhile, or merges them,
        Delta commits nothing, and the rows are worked out and written once more. Rows are the same each time that they
        are worked out; those of the driver are one file for each partition, and none where none stands there are no
        commit.

        Raises:
            ConcurrentAppendException: others were faster each time, or another of :data:`_CONFLICTS`.
        """
        self.ensure(table)
        _again()(self._replace_few if isinstance(rows, pa.Table) else self._replace_rows, table, rows, where)

    def _replace_few(self, table: Table, rows: pa.Table, where: str) -> None:
        few, version, names = self.few(table), self.version(table), list(table.columns)
        days = set(few.read(["date"], date.min, date.max, where)["date"].to_pylist())
        if not days and not len(rows):
            return
        made = from_table(self.spark, table, rows.select(names).cast(arrow_schema(table)))
        before = [from_table(self.spark, table, few.read(names, day, day)) for day in sorted(days)]
        # By Spark: by a condition on partitions alone delta-rs chooses files, and reads all their rows.
        others = [rows_of_day.where(f"NOT coalesce({where}, false)") for rows_of_day in before]
        written = reduce(DataFrame.union, others, made).coalesce(1)
        if not commit_rows(written, self.path(table), version or 0, where, few.read_adds(days)):
            self._replace_where(table, made.coalesce(1), where)

    def _replace_rows(self, table: Table, rows: DataFrame, where: str) -> None:
        version, rows = self.version(table), rows.select(*table.columns)
        is_empty = self.few(table).is_empty(where)
        if not (is_empty and commit_rows(rows, self.path(table), version or 0, where)):
            self._replace_where(table, rows, where)

    def _replace_where(self, table: Table, rows: DataFrame, where: str) -> None:
        writer = rows.write.format("delta").mode("overwrite")
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


def _again() -> Retrying:
    """Return what tries once more after another's commit, by which nothing of one's own was committed."""
    return Retrying(
        retry=retry_if_exception_type(_CONFLICTS),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random(0.0, 1.0),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    )


@contextmanager
def planned_once(spark: SparkSession, *, broadcasts: bool = True) -> Iterator[None]:
    """Queries inside are planned once, not again after each shuffle as adaptive execution does.

    With many small shuffles a query is then one Spark job instead of a dozen, and a checkpoint keeps what is known of
    its partitions, so that later groupings need no shuffle. As many partitions as there are cores at most: each task
    writes the code of its projections again. The settings are the whole session's. Without ``broadcasts`` no join
    broadcasts what it takes for small, by a job for each.
    """
    before = {name: spark.conf.get(name) or "" for name in (_ADAPTIVE, _PARTITIONS, _BROADCAST)}
    spark.conf.set(_ADAPTIVE, "false")
    spark.conf.set(_PARTITIONS, str(min(int(before[_PARTITIONS]), spark.sparkContext.defaultParallelism)))
    if not broadcasts:
        spark.conf.set(_BROADCAST, "-1")
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def keep(rows: DataFrame) -> DataFrame:
    """Return rows that are kept when a job first works them out; those of an executor that is lost are made once more.

    As a local checkpoint, whose plan is not planned again by every later query, but with the way back to the input.
    """
    result: Any = rows.localCheckpoint(eager=False)
    none = result.sparkSession.sparkContext._jvm.scala.Option.empty()
    getattr(result._jdf.queryExecution().logical().rdd(), "checkpointData_$eq")(none)
    return cast("DataFrame", result)


def empty(spark: SparkSession, columns: Mapping[str, str]) -> DataFrame:
    """Return no rows of the given columns.

    Unlike ``createDataFrame([])`` it starts no Python worker, and the optimizer drops it from unions and joins.
    """
    return spark.range(1).select(*[F.lit(None).cast(kind).alias(column) for column, kind in columns.items()]).limit(0)


def frame_of(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return rows as a local frame.

    In one piece: Spark takes a piece without rows, as a filter may leave one, for the end of all of them.
    """
    whole = rows.combine_chunks()
    return spark.createDataFrame(whole) if schema is None else spark.createDataFrame(whole, schema)


def from_table(spark: SparkSession, table: Table, rows: pa.Table) -> DataFrame:
    """Return rows of a table, or columns of them, as a local frame."""
    kinds = {name: table.columns[name] for name in rows.column_names}
    if not len(rows):
        return empty(spark, kinds)
    return frame_of(spark, rows).select(*[F.col(name).cast(kind) for name, kind in kinds.items()])


def rows_of(spark: SparkSession, columns: Mapping[str, str], rows: Sequence[Mapping[str, object]]) -> DataFrame:
    """Return a few rows that the driver made as a frame; a column that a row lacks is null.

    They travel as Arrow: a list of rows would start a Python worker to be read back.
    """
    if not rows:
        return empty(spark, columns)
    table = pa.Table.from_pylist([{column: row.get(column) for column in columns} for row in rows])
    return frame_of(spark, table).select(*[F.col(column).cast(kind) for column, kind in columns.items()])


def send_objects(spark: SparkSession, objects: Iterable[object]) -> DataFrame:
    """Return objects as a frame, in their order; see :mod:`spark_jobs.packed_objects`."""
    pieces: list[list[pa.RecordBatch]] = [[]]
    for row in (pack([one]) for one in objects):
        if pieces[-1] and sum(each.nbytes for each in pieces[-1]) + row.nbytes > _SENT_BYTES:
            pieces.append([])
        pieces[-1].append(row)
    frames = [frame_of(spark, pa.Table.from_batches(piece)) for piece in pieces if piece]
    return reduce(DataFrame.union, frames) if frames else empty(spark, COLUMNS)


def date_hour_columns(timestamp: str) -> list[Column]:
    """Return the columns ``date`` and ``hour`` of a timestamp column."""
    return [F.to_date(timestamp).alias("date"), F.hour(timestamp).alias("hour")]
