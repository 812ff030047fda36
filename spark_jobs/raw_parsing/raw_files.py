"""The raw files of a set of hours: found through Hadoop's file system API, read whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.lake import empty

FILE_PATTERN = "*.jsonl{,.gz}"
CONTENT_COLUMNS = {"source_file": "STRING", "content": "BINARY", "since_ms": "BIGINT", "until_ms": "BIGINT"}
LARGEST_BYTES = 2**30
"""A file passes from Spark to Python as one value, of which Spark takes less than 2 GiB."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """One file of raw lines.

    Attributes:
        path: full path or URI.
        name: path below the raw root, as tables name it.
        cluster: from the directory ``cluster=...``.
        hour: start of the hour of the directory.
        size: bytes.
        modified_s: when it was written, epoch seconds.
    """

    path: str
    name: str
    cluster: str
    hour: datetime
    size: int
    modified_s: float = 0.0

    @property
    def is_readable(self) -> bool:
        """Whether there is something in it, and no more than can be read at once."""
        return 0 < self.size <= LARGEST_BYTES


def list_files(spark: SparkSession, root: str, hours: Iterable[datetime]) -> list[RawFile]:
    """Return the raw files in the directories of ``hours``, of every cluster, by name.

    The root may be any URI that Hadoop reaches; hours without a directory are passed over, hidden files too (a writer's
    temporary files start with a dot).
    """
    wanted = sorted(hours)
    found: list[RawFile] = []
    for day, of_day in groupby(wanted, key=lambda hour: hour.date()):
        alternatives = ",".join(f"{hour:%H}" for hour in of_day)
        found += _glob(spark, root.rstrip("/"), f"cluster=*/date={day}/hour={{{alternatives}}}/{FILE_PATTERN}")
    return sorted(found, key=lambda file: file.name)


def _glob(spark: SparkSession, root: str, pattern: str) -> Iterator[RawFile]:
    jvm = cast("Any", spark.sparkContext._jvm)
    path = jvm.org.apache.hadoop.fs.Path(f"{root}/{pattern}")
    system = path.getFileSystem(cast("Any", spark.sparkContext)._jsc.hadoopConfiguration())
    for status in system.globStatus(path) or ():
        location = status.getPath().toString()
        parts = location.split("/")[-4:]
        if parts[-1].startswith((".", "_")) or status.isDirectory():
            continue
        cluster, date, hour = (part.partition("=")[2] for part in parts[:3])
        timestamp = datetime.fromisoformat(date).replace(hour=int(hour), tzinfo=UTC)
        modified_s = int(status.getModificationTime()) / 1000
        yield RawFile(location, "/".join(parts), cluster, timestamp, int(status.getLen()), modified_s)


def read_contents(
    spark: SparkSession, files: Iterable[RawFile], since: datetime | None = None, until: datetime | None = None
) -> DataFrame:
    """Read whole files, as they are stored; columns ``CONTENT_COLUMNS``.

    ``since_ms`` and ``until_ms`` tell which lines the caller wants: those observed in ``[since, until)``.  Files
    that are empty or larger than ``LARGEST_BYTES`` are left out.
    """
    paths = [file.path for file in files if file.is_readable]
    if not paths:
        return empty(spark, CONTENT_COLUMNS)
    # A path column is URI-encoded; a plus sign is not part of that encoding, so it is shielded from url_decode.
    source = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    since_ms, until_ms = (timestamp and int(timestamp.timestamp() * 1000) for timestamp in (since, until))
    return (
        spark.read.format("binaryFile")
        .load(paths)
        .select(
            F.substring_index(source, "/", -4).alias("source_file"),
            "content",
            F.lit(since_ms).cast("BIGINT").alias("since_ms"),
            F.lit(until_ms).cast("BIGINT").alias("until_ms"),
        )
    )


def hour_range(start: datetime, end: datetime) -> list[datetime]:
    """Return the starts of the hours in ``[start, end)``."""
    return [start + timedelta(hours=offset) for offset in range(int((end - start) / timedelta(hours=1)))]
