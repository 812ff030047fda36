"""What a run has read of each raw file, in the driver: one pass over the parsed lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.ingest.quality import Counts
from spark_jobs.one_job import collect_together
from spark_jobs.raw_parsing.bronze_rows import find_repeated_keys, select_measured, select_named
from spark_jobs.raw_parsing.lenient_metrics import is_left

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_VALUES = ("metric_values", "not_measured", "quarantined_values")
_COUNTED = (*_OF_VALUES, "late", "kept", "quarantined", "bare")


@dataclass(frozen=True, slots=True)
class FileContent:
    """What stands in one file.

    Attributes:
        name: of the file, as tables name it.
        cluster: of its directory.
        hour: of its directory.
        lines: how many it has.
        reason, detail: why it could not be read to its end; None when it could.
        counts: of its lines, by columns of ops.quality; and ``bare``: faulty ones whose text is not at hand.
        first_late: the oldest accepted observation before the interval; None without any.
    """

    name: str
    cluster: str
    hour: datetime
    lines: int
    reason: str | None
    detail: str | None
    counts: dict[str, int]
    first_late: datetime | None


@dataclass(frozen=True, slots=True)
class ReadContents:
    """What a run has read, counted by one Spark job.

    Attributes:
        files: what stands in each file, by its name.
        keys: from :func:`collect_keys`.
        left: lines that Arrow left for Spark's reader; what is counted of them is not known before they are read.
        faulty: lines with a fault.
    """

    files: dict[str, FileContent]
    keys: dict[str, pa.Table]
    left: int
    faulty: int


def count_contents(parsed: DataFrame, start: datetime) -> ReadContents:
    """Count what was read, by parsed lines; what was observed before the interval's start is late."""
    is_line = F.col("line_number").isNotNull()
    place = ("cluster_dir", F.unix_micros("dir_hour").alias("hour_us"), "source_file")
    is_faulty = F.col("fault").isNotNull()
    late = ~is_faulty & (F.col("observed_at") < F.lit(start))
    values = {name: F.col(name) for name in ("metric_values", "not_measured")}
    values["quarantined_values"] = F.when(~is_faulty, F.size("value_faults"))
    lines = parsed.where(is_line)
    counted = lines.groupBy(*place).agg(
        *[F.coalesce(F.sum(column), F.lit(0)).alias(name) for name, column in values.items()],
        F.count_if(late).alias("late"),
        F.min(F.when(late, F.unix_micros("observed_at"))).alias("late_us"),
        F.count_if(is_left()).alias("left"),
        F.count_if(~is_faulty).alias("kept"),
        F.count_if(is_faulty).alias("quarantined"),
        F.count_if(is_faulty & F.col("line").isNull()).alias("bare"),
    )
    files = parsed.where(~is_line).select(*place, "file_lines", "fault.reason", "fault.detail")
    made = collect_together({"files": files, "counted": counted} | _frames_of_keys(lines))
    sums_of = {row["source_file"]: row for row in made["counted"].to_pylist()}
    of_files = {row["source_file"]: row for row in made["files"].to_pylist()}
    every = {name: of_files.get(name, {}) | sums_of.get(name, {}) for name in of_files | sums_of}
    return ReadContents(
        files={name: _content_of(row) for name, row in every.items()},
        keys=made,
        left=sum(row["left"] for row in sums_of.values()),
        faulty=sum(row["quarantined"] for row in sums_of.values()),
    )


def collect_keys(lines: DataFrame) -> dict[str, pa.Table]:
    """Return of lines without fault the ``repeated`` keys, and the vertices that are ``named`` and ``measured``."""
    return collect_together(_frames_of_keys(lines))


def _frames_of_keys(lines: DataFrame) -> dict[str, DataFrame]:
    return {"repeated": find_repeated_keys(lines), "named": select_named(lines), "measured": select_measured(lines)}


def add_left(read: ReadContents, left: ReadContents) -> ReadContents:
    """Return what was read with what was counted of the lines that had been left, none of which has a fault.

    The metric values of these were not known; that they are late, or there twice, was.
    """
    files = {name: _add_values(file, left.files.get(name)) for name, file in read.files.items()}
    return replace(read, files=files, left=0)


def _add_values(file: FileContent, left: FileContent | None) -> FileContent:
    if left is None:
        return file
    known = {name: file.counts[name] + left.counts[name] for name in _OF_VALUES}
    return replace(file, counts={**file.counts, **known})


def _content_of(row: Mapping[str, Any]) -> FileContent:
    late_us = row.get("late_us")
    return FileContent(
        name=row["source_file"],
        cluster=row["cluster_dir"],
        hour=_moment(row["hour_us"]),
        lines=row.get("file_lines") or 0,
        reason=row.get("reason"),
        detail=row.get("detail"),
        counts={name: row.get(name, 0) for name in _COUNTED},
        first_late=None if late_us is None else _moment(late_us),
    )


def count_lines(files: Iterable[FileContent], start: datetime, end: datetime) -> Counts:
    """Count what stands in the files of the directories of ``[start, end)``; ``first_late`` is the oldest of theirs."""
    result: Counts = {}
    for file in files:
        if not start <= file.hour < end:
            continue
        counts = result.setdefault(file.cluster, {"first_late": None, **dict.fromkeys(_COUNTED, 0)})
        for name, number in file.counts.items():
            counts[name] += number
        first = [at for at in (counts["first_late"], file.first_late) if at is not None]
        counts["first_late"] = min(first, default=None)
    return result


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
