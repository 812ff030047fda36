"""Rows that are added to a Delta table where none of their slice are, by one Spark job.

``replaceWhere`` reads the whole log and looks for rows to be replaced, by five more Spark jobs and with five times the
processor time. Where a slice is empty there are none: its rows are appended, in a transaction that counts as a reader
of the slice. Who adds rows to it meanwhile, or has done so since it was looked at, makes it fail or not begin.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def append_to_empty(rows: DataFrame, path: str, version: int, where: str) -> bool:
    """Append rows to a table that is still at the version in which a slice was empty; returns whether it was.

    Args:
        rows: that satisfy ``where``; the table has a column for each of theirs, or nothing is done.
        path: of the table.
        version: of the table.
        where: the slice, as SQL.

    Raises:
        ConcurrentAppendException: another added rows to files that may have rows of the slice.
    """
    session: Any = rows.sparkSession
    java, jvm = session._jsparkSession, session.sparkContext._jvm
    delta = jvm.org.apache.spark.sql.delta
    transaction = delta.DeltaLog.forTable(java, path).startTransaction()
    is_whole = set(transaction.metadata().schema().fieldNames()) >= set(rows.columns)
    if transaction.readVersion() != version or not is_whole:
        return False
    condition = java.sessionState().sqlParser().parseExpression(where)
    split = getattr(getattr(delta, "DeltaTableUtils$"), "MODULE$").splitConjunctivePredicates
    transaction.trackReadPredicates(split(condition), False, True)
    none = jvm.scala.Option.empty()
    kind = getattr(delta, "DeltaOperations$Write")(jvm.org.apache.spark.sql.SaveMode.Append, *[none] * 8)
    tags = getattr(transaction, "commitIfNeeded$default$3")()
    transaction.commitIfNeeded(transaction.writeFiles(rows._jdf), kind, tags)
    return True
