"""What became of each raw file's lines: rows of ops.files.

The number of lines is counted where a file is cut into them, what became of them where they are written: that both
agree (lines = kept + duplicate + quarantined) shows that no line was lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.raw_files import MISPLACED, UNREADABLE, UNREADABLE_FOLDER, RawFile
from spark_jobs.ingest.file_contents import OF_LINES, FileContent

_NO_FILES = frozenset({MISPLACED, UNREADABLE_FOLDER})


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What became of the lines of a file.

    Attributes:
        kept, duplicate, quarantined: lines.
        quarantined_values: of metrics, in lines that are kept.
        bare: quarantined lines whose text is not at hand: their fault was found by comparing them with others.
    """

    kept: int = 0
    duplicate: int = 0
    quarantined: int = 0
    quarantined_values: int = 0
    bare: int = 0


def count_read(read_files: Mapping[str, FileContent]) -> dict[str, LineCounts]:
    """Return by the name of its file what became of its lines, where none has a fault that only others show."""
    return {name: LineCounts(**{of: file.counts[of] for of in OF_LINES}) for name, file in read_files.items()}


def count_marked(own_marked: DataFrame) -> dict[str, LineCounts]:
    """Return by the name of its file what became of the marked lines of a run's own files."""
    has_values = F.col("fault").isNull() & ~F.col("duplicate") & F.col("value_faults").isNotNull()
    counted = own_marked.groupBy("source_file").agg(
        F.count_if(F.col("fault").isNull() & ~F.col("duplicate")).alias("kept"),
        F.count_if(F.col("fault").isNull() & F.col("duplicate")).alias("duplicate"),
        F.count_if(F.col("fault").isNotNull()).alias("quarantined"),
        F.coalesce(F.sum(F.when(has_values, F.size("value_faults"))), F.lit(0)).alias("quarantined_values"),
        F.count_if(F.col("fault").isNotNull() & F.col("line").isNull()).alias("bare"),
    )
    rows = [row.asDict() for row in counted.collect()]
    return {row.pop("source_file"): LineCounts(**row) for row in rows}


def count_files(
    own_files: Iterable[RawFile], read_files: Mapping[str, FileContent], marked: Mapping[str, LineCounts]
) -> list[dict[str, Any]]:
    """Return the rows of ops.files, with ``detail`` of a ``reason`` that was found while a file was read.

    Args:
        own_files: the interval's own files, and what is misplaced.
        read_files: what stands in each, by name.
        marked: what became of their lines.
    """
    files = [file for file in own_files if file.fault is None or file.fault[0] not in _NO_FILES]
    return [_row_of(file, read_files.get(file.name), marked.get(file.name, LineCounts())) for file in files]


def _row_of(file: RawFile, read: FileContent | None, counts: LineCounts) -> dict[str, Any]:
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
        "kept": counts.kept,
        "duplicate": counts.duplicate,
        "quarantined": counts.quarantined,
        "quarantined_values": counts.quarantined_values,
        "reason": listed or own_reason,
        "date": file.hour.date(),
        "hour": file.hour.hour,
        "detail": detail,
    }


def _whole_ms(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(epoch_s * 1000))
