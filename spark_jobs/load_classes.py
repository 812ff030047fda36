"""``spark-submit spark_jobs/load_classes.py LAKE``: load what most stages load, on a few rows.

`make setup` runs it to archive those classes (``tools/class_archive.py``): text and tables are read and written, rows
go to Python and back as Arrow, and are joined, grouped and checkpointed. An ingestion gave an archive of the same size
for 148 instead of 87 CPU seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.settings import load_settings
from include.tables import JOBS, Table
from spark_jobs.lake import Lake, date_hour_columns, planned_once, rows_of
from spark_jobs.session import start_session

_LINES = 20


def read_lines(spark: SparkSession, folder: Path) -> DataFrame:
    """Write lines of JSON and return them as rows of ``silver.jobs``."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = {"cluster": "STRING", "job": "STRING", "observed_at": "TIMESTAMP"}
    rows = rows_of(spark, wanted, [{"cluster": "c", "job": f"j{n}", "observed_at": at} for n in range(_LINES)])
    rows.select(F.to_json(F.struct("*")).alias("value")).write.text(str(folder), compression="gzip")
    schema = ", ".join(f"{name} {kind}" for name, kind in wanted.items())
    lines = spark.read.text(str(folder)).withColumn("file", F.input_file_name())
    parsed = lines.select("file", F.from_json("value", schema).alias("row")).select("file", "row.*")
    return parsed.select("*", *date_hour_columns("observed_at")).localCheckpoint()


def pass_through_python(rows: DataFrame) -> DataFrame:
    """Give rows to Python and take them back, in batches and grouped by job."""
    schema = "cluster STRING, job STRING, observed_at TIMESTAMP, date DATE, hour INT"
    batches = rows.select("cluster", "job", "observed_at", "date", "hour").mapInArrow(lambda batches: batches, schema)
    return batches.groupBy("cluster", "job").applyInArrow(lambda table: table, schema)


def write_and_read(lake: Lake, table: Table, rows: DataFrame) -> int:
    """Replace a slice twice, and read, join and count what stands there."""
    missing = [F.lit(None).cast(kind).alias(name) for name, kind in table.columns.items() if name not in rows.columns]
    whole = rows.select("*", *missing)
    for _ in range(2):
        lake.replace(table, whole, "date = '2026-01-01'")
    DeltaTable.forPath(lake.spark, lake.path(table)).history(1).collect()
    read = lake.read(table).where("date >= '2026-01-01' AND hour < 24")
    newest = read.groupBy("cluster", "job").agg(F.max_by(F.struct("observed_at", "state"), "observed_at").alias("last"))
    joined = read.join(F.broadcast(newest), ["cluster", "job"], "left").dropDuplicates(["cluster", "job"])
    with planned_once(lake.spark):
        return len(joined.orderBy("job").toArrow()) + joined.persist().distinct().count()


def main(argv: Sequence[str]) -> int:
    """Load the classes; returns the exit code."""
    (folder,) = argv
    spark = start_session(load_settings(), "load-classes")
    lake = Lake(spark, f"{folder}/lake")
    lake.ensure(JOBS)
    rows = pass_through_python(read_lines(spark, Path(folder) / "lines"))
    return 0 if write_and_read(lake, JOBS, rows) == 2 * _LINES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
