"""What a run has read of each raw file, in the driver: one pass over the parsed lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.ingest.quality import Counts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTED = ("metric_values", "not_measured", "late")


@dataclass(frozen=True, slots=True)
class FileContent:
    """What stands in one file.

    Attributes:
        name: of the file, as tables name it.
        cluster: of its directory.
        hour: of its directory.
        lines: how many it has.
        reason, detail: why it could not be read to its end; None when it could.
        counts: of its lines, columns of ops.quality by name.
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


def collect_files(parsed: DataFrame, start: datetime) -> dict[str, FileContent]:
    """Return by its name what stands in each file that was read.

    Args:
        parsed: from :func:`spark_jobs.raw_parsing.parsed_lines.parse_lines`.
        start: of the interval; what was observed before is late.
    """
    is_line = F.col("line_number").isNotNull()
    late = is_line & F.col("fault").isNull() & (F.col("observed_at") < F.lit(start))
    of_file = F.max(F.when(~is_line, F.struct("file_lines", "fault.reason", "fault.detail"))).alias("of_file")
    sums = [F.coalesce(F.sum(F.when(is_line, F.col(name))), F.lit(0)).alias(name) for name in _COUNTED[:2]]
    rows = parsed.groupBy("cluster_dir", F.unix_micros("dir_hour").alias("hour_us"), "source_file").agg(
        of_file,
        *sums,
        F.count_if(late).alias("late"),
        F.min(F.when(late, F.unix_micros("observed_at"))).alias("late_us"),
    )
    return {row["source_file"]: _content_of(row.asDict()) for row in rows.collect()}


def _content_of(row: dict[str, object]) -> FileContent:
    known = row["of_file"]
    lines, reason, detail = (None, None, None) if known is None else tuple(known)  # type: ignore[arg-type]
    return FileContent(
        name=str(row["source_file"]),
        cluster=str(row["cluster_dir"]),
        hour=_moment(row["hour_us"]),
        lines=lines or 0,
        reason=reason,
        detail=detail,
        counts={name: int(str(row[name])) for name in _COUNTED},
        first_late=None if row["late_us"] is None else _moment(row["late_us"]),
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


def _moment(us: object) -> datetime:
    return _EPOCH + timedelta(microseconds=int(str(us)))
