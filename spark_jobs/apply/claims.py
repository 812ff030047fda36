"""Writing ``gold.applied_steps`` so that of any number of appliers one alone owns a step.

A step is claimed by inserting its row before anything is sent.  Delta lets one of two concurrent inserts commit; the
other is told of the conflict, reads again, finds the row and inserts nothing: the count of inserted rows says who won.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from include.tables import APPLIED_STEPS
from spark_jobs.lake import Lake

Row = dict[str, Any]
ATTEMPTS = 8
CONFLICTS = (  # in Python they have no class in common
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)


retry_commit = Retrying(
    retry=retry_if_exception_type(CONFLICTS),
    stop=stop_after_attempt(ATTEMPTS),
    wait=wait_exponential(multiplier=0.1),
    reraise=True,
)
"""Commits again after another writer came first, a bounded number of times; waits 0.1 s, then twice as long."""


class Ledger:
    """The table of applied steps of one lake."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        retry_commit(lambda: lake.ensure(APPLIED_STEPS))

    def _frame(self, rows: Sequence[Row]) -> DataFrame:
        spark: SparkSession = self.lake.spark
        complete = [{column: row.get(column) for column in APPLIED_STEPS.columns} for row in rows]
        return spark.createDataFrame(complete, APPLIED_STEPS.ddl)

    def _merge(self, rows: Sequence[Row]) -> Any:
        target = DeltaTable.forPath(self.lake.spark, self.lake.path(APPLIED_STEPS)).alias("t")
        return target.merge(self._frame(rows).alias("s"), "t.step_id = s.step_id")

    def record(self, rows: Sequence[Row]) -> None:
        """Insert outcomes of steps that nobody has dealt with; a row that is there stays."""
        if rows:
            retry_commit(lambda: self._merge(rows).whenNotMatchedInsertAll().execute())

    def claim(self, row: Row) -> bool:
        """Insert one claim; whether this caller made it."""
        counts = retry_commit(lambda: self._merge([row]).whenNotMatchedInsertAll().execute().first())
        return bool(counts["num_inserted_rows"])

    def take_over(self, row: Row, claimed_at: Any) -> bool:
        """Renew a claim that its owner left; whether this caller renewed it, since only one can."""
        unchanged = f"t.status = 'claimed' AND unix_micros(t.decided_at) = {round(claimed_at.timestamp() * 1e6)}"
        update = {"decided_at": "s.decided_at"}
        counts = retry_commit(lambda: self._merge([row]).whenMatchedUpdate(unchanged, update).execute().first())
        return bool(counts["num_updated_rows"])

    def settle(self, rows: Sequence[Row]) -> None:
        """Write the outcomes of claims of this caller."""
        if rows:
            still_claimed = "t.status = 'claimed'"
            retry_commit(lambda: self._merge(rows).whenMatchedUpdateAll(still_claimed).execute())
