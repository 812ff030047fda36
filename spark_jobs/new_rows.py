"""A Delta transaction of a slice by one Spark job: rows are added, and files that hold rows of the slice are removed.

``replaceWhere`` reads the whole log and looks for rows to be replaced, by five more Spark jobs and with five times the
processor time. Here the driver says what goes: nothing where the slice is empty, else the files of dates of which it
has the other rows as well. The transaction counts as a reader of the slice: who adds rows to it meanwhile, or has done
so since the driver looked, makes it fail or not begin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame


def commit_rows(
    rows: DataFrame, path: str, version: int, where: str, removed: Sequence[Mapping[str, object]] = ()
) -> bool:
    """Add rows to a table that is still at a version, in place of some files; returns whether it was.

    Rows satisfy ``where`` or were in the removed files, those of :meth:`include.lake_table.LakeTable.read_adds`; where
    the table lacks one of their columns nothing is done. No other file has rows of the slice at that version.

    Raises:
        ConcurrentAppendException: another added rows to files that may have rows of the slice, or such an error.
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
    mode, none = jvm.org.apache.spark.sql.SaveMode, jvm.scala.Option.empty()
    kind = getattr(delta, "DeltaOperations$Write")(mode.Overwrite if removed else mode.Append, *[none] * 8)
    actions = transaction.writeFiles(rows._jdf)
    for file in removed:
        text = json.dumps({"add": {**file, "modificationTime": 0, "dataChange": True}})
        actions = actions.appended(getattr(getattr(delta.actions, "Action$"), "MODULE$").fromJson(text).remove())
    tags = getattr(transaction, "commitIfNeeded$default$3")()
    transaction.commitIfNeeded(actions, kind, tags)
    return True
