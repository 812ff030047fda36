"""The raw files of a set of hours: found through Hadoop's file system API, read as lines, probed when unreadable."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.lake import empty

if TYPE_CHECKING:
    import pandas as pd

FILE_PATTERN = "*.jsonl{,.gz}"
LINE_COLUMNS = {"source_file": "STRING", "line": "STRING"}
_GZIP_WINDOW = 31  # zlib's code for "a gzip member, header and checksum included"


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
        moment = datetime.fromisoformat(date).replace(hour=int(hour), tzinfo=UTC)
        modified_s = int(status.getModificationTime()) / 1000
        yield RawFile(location, "/".join(parts), cluster, moment, int(status.getLen()), modified_s)


def read_lines(spark: SparkSession, files: Iterable[RawFile], *, skip_corrupt: bool) -> DataFrame:
    """Read the lines of files that are not empty; columns ``LINE_COLUMNS``.

    With ``skip_corrupt`` a file that cannot be decompressed to its end gives the lines before the damage; without it
    such a file fails the job.
    """
    paths = [file.path for file in files if file.size > 0]
    if not paths:
        return empty(spark, LINE_COLUMNS)
    text = spark.read.option("ignoreCorruptFiles", str(skip_corrupt).lower()).text(paths)
    # A path column is URI-encoded; a plus sign is not part of that encoding, so it is shielded from url_decode.
    source = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    name = F.substring_index(source, "/", -4)
    return text.select(name.alias("source_file"), F.col("value").alias("line"))


def find_corrupt(spark: SparkSession, files: Iterable[RawFile]) -> dict[str, str]:
    """Return name -> what is wrong, for the compressed files that do not decompress to their end.

    Reads every byte, on the executors: meant for after a read that failed.
    """
    named = {unquote(file.path): file.name for file in files if file.size > 0 and file.path.endswith(".gz")}
    if not named:
        return {}
    contents = (
        spark.read.format("binaryFile").load([file.path for file in files if file.size > 0]).select("path", "content")
    )
    faults = contents.mapInPandas(_probe, "path STRING, fault STRING").collect()
    by_tail = {"/".join(path.split("/")[-4:]): name for path, name in named.items()}
    return {
        by_tail[tail]: row.fault for row in faults if (tail := "/".join(unquote(row.path).split("/")[-4:])) in by_tail
    }


def _probe(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        faults = batch.assign(fault=batch["content"].map(gzip_fault))
        yield faults.loc[faults["fault"].notna(), ["path", "fault"]]


def gzip_fault(content: bytes) -> str | None:
    """Return what keeps a gzip file (of one or more members) from being read to its end, None when nothing does."""
    rest = content
    while rest:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            member.decompress(rest)
        except zlib.error as error:
            return str(error)
        if not member.eof:
            return "the file ends inside a gzip member"
        rest = member.unused_data
    return None


def hour_range(start: datetime, end: datetime) -> list[datetime]:
    """Return the starts of the hours in ``[start, end)``."""
    return [start + timedelta(hours=offset) for offset in range(int((end - start) / timedelta(hours=1)))]
