"""``spark-submit spark_jobs/try_storage.py``: whether Spark and delta-rs may write one table of the lake side by side.

The doctor runs it as stages are run, so that it meets what a stage would meet. Prints one line
``tidewise: storage {"check": ..., "fault": ...}`` for each thing it tries; an empty fault is none.
"""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable
from datetime import date
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from include.commit_once import commit_path
from include.lake_table import LakeTable
from include.settings import load_settings
from include.tables import Table
from spark_jobs.failures import describe_failure
from spark_jobs.lake import Lake, rows_of
from spark_jobs.session import start_session

LINE = "tidewise: storage "
WRITE, READ, REFUSE = "Spark writes", "Spark and delta-rs read each other", "Spark refuses a second commit"
_LOG_STORE = "spark.delta.logStore.s3a.impl"


def try_table(spark: SparkSession, root: str, tell: Callable[[str, str], None]) -> None:
    """Write a table below ``_doctor`` of the lake through both, and have Spark commit a version that is there."""
    name = f"doctor-{uuid.uuid4().hex}"
    table = Table(f"_doctor.{name}", {"number": "INT", "date": "DATE"}, keys=("number",))
    lake, few = Lake(spark, root), LakeTable(root, table)
    day = date(2026, 1, 1)
    lake.ensure(table)
    rows_of(spark, table.columns, [{"number": 1, "date": day}]).write.format("delta").mode("append").save(
        lake.path(table)
    )
    tell(WRITE, "")
    few.append([{"number": 2, "date": day}])
    numbers = {row["number"] for row in lake.read(table).collect()}
    own = set(few.read(["number"], day, day).column("number").to_pylist())
    tell(READ, "" if numbers == own == {1, 2} else f"Spark reads {sorted(numbers)}, delta-rs {sorted(own)}, of [1, 2]")
    tell(REFUSE, try_second_commit(spark, f"{lake.path(table)}/{commit_path(2)}"))


def try_second_commit(spark: SparkSession, commit: str) -> str:
    """Have the log store in use write a commit that is there; returns what is wrong, empty when it is refused."""
    jvm: Any = spark.sparkContext._jvm
    name = spark.conf.get(_LOG_STORE, None)
    if name is None:
        return f"{_LOG_STORE} is not set, and Delta's own log store lets a second driver replace a commit"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    store = functools.reduce(getattr, name.split("."), jvm)(configuration)
    actions = jvm.java.util.ArrayList()
    actions.add('{"commitInfo":{"operation":"DOCTOR"}}')
    try:
        store.write(jvm.org.apache.hadoop.fs.Path(commit), actions.iterator(), False, configuration)
    except Py4JJavaError as refusal:
        kind = str(refusal.java_exception.getClass().getName())
        return "" if kind.endswith("FileAlreadyExistsException") else f"{kind}: {refusal.java_exception.getMessage()}"
    return "a second commit took the place of the first, so tables would lose rows"


def main() -> None:
    """Try, and print."""

    def tell(check: str, fault: str) -> None:
        print(f"{LINE}{json.dumps({'check': check, 'fault': fault})}", flush=True)

    settings = load_settings()
    spark = start_session(settings, "try-storage")
    try:
        try_table(spark, settings.paths.lake, tell)
    except Exception as error:
        tell(WRITE, describe_failure(error))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
