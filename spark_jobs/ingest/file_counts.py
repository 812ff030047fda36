"""What became of each raw file's lines: rows of ops.files.

The number of lines is counted where a file is cut into them, what became of them where they are written: that both
agree (lines = kept + duplicate + quarantined) shows that no line was lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.raw_files import MISPLACED, UNREADABLE, UNREADABLE_FOLDER, RawFile
from spark_jobs.ingest.file_contents import FileContent

Marked = Mapping[str, Mapping[str, int]]
"""File -> what became of its lines: ``kept``, ``duplicate``, ``quarantined``; ``bare`` of them have no text at hand, as
others showed their fault; ``quarantined_values`` are of metrics in lines that are kept."""
_NO_FILES = frozenset({MISPLACED, UNREADABLE_FOLDER})


def count_marked(own_marked: DataFrame) -> Marked:
    """Return what became of the marked lines of a run's own files, as :class:`.FileContent` has it of those read."""
    has_values = F.col("fault").isNull() & ~F.col("duplicate") & F.col("value_faults").isNotNull()
    counted = own_marked.groupBy("source_file").agg(
        F.count_if(F.col("fault").isNull() & ~F.col("duplicate")).alias("kept"),
        F.count_if(F.col("fault").isNull() & F.col("duplicate")).alias("duplicate"),
        F.count_if(F.col("fault").isNotNull()).alias("quarantined"),
        F.coalesce(F.sum(F.when(has_values, F.size("value_faults"))), F.lit(0)).alias("quarantined_values"),
        F.count_if(F.col("fault").isNotNull() & F.col("line").isNull()).alias("bare"),
    )
    return {row["source_file"]: row.asDict() for row in counted.collect()}


def count_files(
    own_files: Iterable[RawFile], read_files: Mapping[str, FileContent], marked: Marked
) -> list[dict[str, Any]]:
    """Return the rows of ops.files, with ``detail`` of a ``reason`` that was found while a file was read."""
    files = [file for file in own_files if file.fault is None or file.fault[0] not in _NO_FILES]
    return [_row_of(file, read_files.get(file.name), marked.get(file.name, {})) for file in files]


def _row_of(file: RawFile, read: FileContent | None, counts: Mapping[str, int]) -> dict[str, Any]:
    listed = None if file.fault is None else str(file.fault[0])
    if listed is None and read is None:  # Hadoop passes over what it cannot read
        own_reason, detail = str(UNREADABLE), "not read by Hadoop"
    else:
        own_reason, detail = (None, None) if read is None else (read.reason, read.detail)  # type: ignore[assignment]
    return {
        "cluster": file.cluster,
        "source_file": file.name,
        "bytes": file.size,
        "modified_at": _whole_ms(file.modified_s),
        "lines": 0 if read is None else read.lines,
        "kept": counts.get("kept", 0),
        "duplicate": counts.get("duplicate", 0),
        "quarantined": counts.get("quarantined", 0),
        "quarantined_values": counts.get("quarantined_values", 0),
        "reason": listed or own_reason,
        "date": file.hour.date(),
        "hour": file.hour.hour,
        "detail": detail,
    }


def _whole_ms(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(epoch_s * 1000))
