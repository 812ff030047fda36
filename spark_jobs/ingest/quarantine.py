"""What became of a run's own files: ops.files, and ops.quarantine with what was refused, and why, as received."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.raw_files import RawFile
from include.tables import FILES, QUARANTINE
from spark_jobs.ingest.file_counts import count_files
from spark_jobs.ingest.hours import hours_where
from spark_jobs.ingest.quality import Counts, count_refusals
from spark_jobs.ingest.raw_input import RawInput
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.lake import Lake, date_hour_columns, rows_of
from spark_jobs.raw_parsing.numbered_lines import read_lines
from spark_jobs.raw_parsing.raw_contents import read_contents

_FOUND = "STRUCT<reason: STRING, detail: STRING, raw: STRING>"
MOST_SHOWN = 20
"""So many refusals are named in the log and the summary; the table has all."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What was refused of a run's own files.

    Attributes:
        counts: columns of ops.quality.
        refusals: what was refused most, one line each.
    """

    counts: Counts
    refusals: list[str]


def write_refused(lake: Lake, raw: RawInput, own_marked: DataFrame, writes: TableWrites) -> Refused:
    """Write ops.files and ops.quarantine: each file, line and value that is refused, once.

    Args:
        lake: of the run.
        raw: what was read.
        own_marked: the marked lines of the interval's own directories: the others are another run's to judge.
        writes: of the run.
    """
    where = hours_where(raw.interval)
    files = count_files(lake, raw.own_files, raw.read_files, own_marked).localCheckpoint()
    writes.start(FILES, files, where)
    lines = _quarantine_rows(_add_lines(lake, raw.own_files, own_marked))
    refused = lines.unionByName(_quarantine_files(lake.spark, raw.own_files, files)).distinct()
    refused = refused.repartition("date", "hour").localCheckpoint()  # one file for each hour
    writes.start(QUARANTINE, refused, where)
    return Refused(count_refusals(raw.own_files, files), _name_refusals(refused))


def _quarantine_rows(rows: DataFrame) -> DataFrame:
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


def _add_lines(lake: Lake, own_files: list[RawFile], rows: DataFrame) -> DataFrame:
    """Fill in the lines of rows whose fault was found only by comparing them with others.

    Args:
        lake: of the run.
        own_files: the interval's own files.
        rows: their marked rows.
    """
    bare = rows.where("fault IS NOT NULL AND line IS NULL").localCheckpoint()
    names = {row["source_file"] for row in bare.select("source_file").distinct().collect()}
    if not names:
        return rows
    lines = read_lines(read_contents(lake.spark, [file for file in own_files if file.name in names]))
    wanted = bare.select("source_file", "line_number")
    result = lines.join(F.broadcast(wanted), ["source_file", "line_number"], "left_semi")
    complete = bare.drop("line").join(result, ["source_file", "line_number"], "left")
    return rows.where("fault IS NULL OR line IS NOT NULL").unionByName(complete.select(*rows.columns))


def _quarantine_files(spark: SparkSession, listed: Iterable[RawFile], files: DataFrame) -> DataFrame:
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


def _name_refusals(quarantine: DataFrame) -> list[str]:
    """Return what was refused most: cluster, file, rule and how often, one line each."""
    counted = quarantine.groupBy("cluster", "source_file", "reason").agg(F.count(F.lit(1)).alias("n"))
    first = counted.orderBy(F.desc("n"), "source_file", "reason").limit(MOST_SHOWN).collect()
    return [f"cluster {row['cluster']}, file {row['source_file']}: {row['reason']} ({row['n']})" for row in first]
