"""What became of each raw file's lines: rows of ops.files.

The number of lines is counted where a file is cut into them, what became of them where they are written: that both
agree (lines = kept + duplicate + quarantined) shows that no line was lost on the way.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.raw_files import MISPLACED, UNREADABLE, UNREADABLE_FOLDER, RawFile
from include.tables import FILES
from spark_jobs.lake import Lake, rows_of

_NO_FILES = frozenset({MISPLACED, UNREADABLE_FOLDER})
_COUNTS = ("kept", "duplicate", "quarantined", "quarantined_values")
_LISTED = {
    "cluster": "STRING",
    "source_file": "STRING",
    "bytes": "BIGINT",
    "modified_at": "TIMESTAMP",
    "listed_reason": "STRING",
    "date": "DATE",
    "hour": "INT",
}


def count_files(lake: Lake, own_files: list[RawFile], read_files: DataFrame, own_marked: DataFrame) -> DataFrame:
    """Return the rows of ops.files, with ``detail`` of a ``reason`` that was found while a file was read.

    Args:
        lake: of the run.
        own_files: the interval's own files, and what is misplaced.
        read_files: from :func:`spark_jobs.raw_parsing.parsed_lines.select_files`.
        own_marked: the marked lines of those files.
    """
    has_values = F.col("fault").isNull() & ~F.col("duplicate") & F.col("value_faults").isNotNull()
    counted = own_marked.groupBy("source_file").agg(
        F.count_if(F.col("fault").isNull() & ~F.col("duplicate")).alias("kept"),
        F.count_if(F.col("fault").isNull() & F.col("duplicate")).alias("duplicate"),
        F.count_if(F.col("fault").isNotNull()).alias("quarantined"),
        F.sum(F.when(has_values, F.size("value_faults"))).alias("quarantined_values"),
    )
    listed = rows_of(
        lake.spark,
        _LISTED,
        [
            {
                "cluster": file.cluster,
                "source_file": file.name,
                "bytes": file.size,
                "modified_at": _whole_ms(file.modified_s),
                "listed_reason": file.fault and str(file.fault[0]),
                "date": file.hour.date(),
                "hour": file.hour.hour,
            }
            for file in own_files
            if file.fault is None or file.fault[0] not in _NO_FILES
        ],
    )
    read = read_files.withColumn("was_read", F.lit(True))
    result = listed.join(F.broadcast(read), "source_file", "left").join(F.broadcast(counted), "source_file", "left")
    # Hadoop passes over what it cannot read.
    vanished = F.col("listed_reason").isNull() & F.col("was_read").isNull()
    detail = F.when(vanished, F.lit("not read by Hadoop")).otherwise(F.col("fault.detail"))
    reason = F.coalesce("listed_reason", F.when(vanished, F.lit(str(UNREADABLE))).otherwise(F.col("fault.reason")))
    numbers = {name: F.coalesce(name, F.lit(0)).cast("BIGINT") for name in _COUNTS}
    lines = F.coalesce("file_lines", F.lit(0)).cast("BIGINT")
    made = result.withColumns({**numbers, "lines": lines, "reason": reason, "detail": detail})
    return made.select(*FILES.columns, "detail")


def _whole_ms(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(epoch_s * 1000))
