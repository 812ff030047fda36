"""Rows of ops.quarantine: what was refused, with the rule that it breaks and its text as received."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.raw_files import RawFile
from include.tables import QUARANTINE
from spark_jobs.lake import date_hour_columns, rows_of

_FOUND = "STRUCT<reason: STRING, detail: STRING, raw: STRING>"
MOST_SHOWN = 20
"""So many refusals are named in the log and the summary; the table has all."""


def quarantine_rows(rows: DataFrame) -> DataFrame:
    """Return one row per line that has a fault, with the line as received, and one per metric value that has a fault.

    Of a line that only has faulty values, the rest stands in bronze.
    """
    of_line = F.array(F.struct("fault.reason", "fault.detail", F.col("line").alias("raw")).cast(_FOUND))
    of_values = F.when(~F.col("duplicate"), F.col("value_faults"))
    result = F.when(F.col("fault").isNotNull(), of_line).otherwise(of_values)
    faulty = rows.where("fault IS NOT NULL OR value_faults IS NOT NULL").withColumn("found", F.explode(result))
    return faulty.select(
        F.col("cluster_dir").alias("cluster"),
        "found.reason",
        "found.detail",
        "found.raw",
        "raw_bytes",
        "line_number",
        "observed_at",
        "source_file",
        *date_hour_columns("dir_hour"),
    ).select(*QUARANTINE.columns)


def add_lines(rows: DataFrame, lines: Callable[[list[str]], DataFrame]) -> DataFrame:
    """Fill in the lines of rows whose fault was found only by comparing them with others.

    Args:
        rows: marked rows that may have faults.
        lines: reads the lines of the files of the given names; columns ``LINE_COLUMNS``.
    """
    bare = rows.where("fault IS NOT NULL AND line IS NULL").localCheckpoint()
    files = [row["source_file"] for row in bare.select("source_file").distinct().collect()]
    if not files:
        return rows
    wanted = bare.select("source_file", "line_number")
    result = lines(files).join(F.broadcast(wanted), ["source_file", "line_number"], "left_semi")
    complete = bare.drop("line").join(result, ["source_file", "line_number"], "left")
    return rows.where("fault IS NULL OR line IS NOT NULL").unionByName(complete.select(*rows.columns))


def quarantine_files(spark: SparkSession, listed: Iterable[RawFile], files: DataFrame) -> DataFrame:
    """Return one row per file or folder that could not be read, or not to its end, or is misplaced.

    Args:
        spark: the session.
        listed: the interval's own files.
        files: rows of :func:`spark_jobs.ingest.file_counts.count_files`.
    """
    refused = [
        {
            "cluster": file.cluster or None,
            "reason": str(file.fault[0]),
            "detail": file.fault[1],
            "raw": file.name,
            "source_file": file.name,
            "date": file.hour.date(),
            "hour": file.hour.hour,
        }
        for file in listed
        if file.fault is not None
    ]
    damaged = files.where("reason IS NOT NULL AND detail IS NOT NULL").select(
        "cluster", "reason", "detail", F.col("source_file").alias("raw"), "source_file", "date", "hour"
    )
    missing = {name: F.lit(None).cast(kind) for name, kind in QUARANTINE.columns.items() if name not in damaged.columns}
    return rows_of(spark, QUARANTINE.columns, refused).unionByName(
        damaged.withColumns(missing).select(*QUARANTINE.columns)
    )


def name_refusals(quarantine: DataFrame) -> list[str]:
    """Return what was refused most: cluster, file, rule and how often, one line each."""
    counted = quarantine.groupBy("cluster", "source_file", "reason").agg(F.count(F.lit(1)).alias("n"))
    first = counted.orderBy(F.desc("n"), "source_file", "reason").limit(MOST_SHOWN).collect()
    return [f"cluster {row['cluster']}, file {row['source_file']}: {row['reason']} ({row['n']})" for row in first]
