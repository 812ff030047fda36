"""Raw files read where the work is: by Python on a file system that is mounted, through Hadoop anywhere else.

Python opens a file of any name that the file system allows; Hadoop takes some characters for patterns and cannot name
bytes that are no UTF-8.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.raw_files import RawFile
from include.raw_lines import CHUNK_BYTES, read_chunks
from spark_jobs.lake import empty

_TASK_BYTES = 64 * 2**20
_OPENING_BYTES = 2**16  # what it costs to open a file, as bytes to read
# Spark's own way to say that a path is one and no pattern.
_NO_PATTERNS = {"__globPaths__": "false", "ignoreCorruptFiles": "true"}


@dataclass(frozen=True, slots=True)
class FileRequest:
    """One file and what is wanted of it.

    Attributes:
        name: as tables name it.
        cluster: of its directory.
        hour: of its directory.
        since_ms, until_ms: only lines observed in ``[since_ms, until_ms)``; None for no bound.
        local_path: where Python opens it; None when Hadoop reads it.
        uri: where Hadoop reads it.
        size: bytes.
    """

    name: str
    cluster: str
    hour: datetime
    since_ms: int | None
    until_ms: int | None
    local_path: bytes | None
    uri: str
    size: int


FileChunks = tuple[FileRequest, Iterator[bytes]]
"""A file and its bytes, in pieces."""


class FilesReader(Protocol):
    """What is done with the files of a task: to batches of rows."""

    def __call__(self, files: Iterator[FileChunks], /) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        ...


class RawContents:
    """Files of which every reader gets the bytes, on the executors."""

    def __init__(self, spark: SparkSession, files: Sequence[FileRequest]) -> None:
        self._spark = spark
        self._files = tuple(files)

    def __add__(self, other: RawContents) -> RawContents:
        return RawContents(self._spark, [*self._files, *other._files])

    def read_all(self, read: FilesReader, columns: Mapping[str, str]) -> DataFrame:
        """Return the rows that a function gives for the files of each task; columns have Spark SQL types."""
        schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        local = [file for file in self._files if file.local_path is not None]
        remote = [file for file in self._files if file.local_path is None]
        frames = []
        if local:
            frames.append(self._read_local(local, read, schema))
        if remote:
            frames.append(self._read_remote(remote, read, schema))
        return reduce(DataFrame.unionByName, frames) if frames else empty(self._spark, columns)

    def _read_local(self, files: list[FileRequest], read: FilesReader, schema: str) -> DataFrame:
        slices = share_out(files, self._spark.sparkContext.defaultParallelism)

        def open_files(batches: Iterable[pa.RecordBatch]) -> Iterator[FileChunks]:
            numbers = (number for batch in batches for number in batch.column("id").to_pylist())
            for file in (file for number in numbers for file in slices[number]):
                yield file, read_chunks(Path(os.fsdecode(file.local_path or b"")))

        numbers = self._spark.range(0, len(slices), 1, len(slices))
        return numbers.mapInArrow(lambda batches: read(open_files(batches)), schema)

    def _read_remote(self, files: list[FileRequest], read: FilesReader, schema: str) -> DataFrame:
        """A file that cannot be read has no rows: it is missed when files are counted."""
        by_name = {file.name: replace(file, uri="") for file in files}

        def open_files(batches: Iterable[pa.RecordBatch]) -> Iterator[FileChunks]:
            for batch in batches:
                for name, content in zip(batch.column("name").to_pylist(), batch.column("content"), strict=True):
                    yield by_name[name], _slices(content.as_buffer())

        # A path column is URI-encoded; a plus sign is not part of that encoding, so it is shielded from url_decode.
        source = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
        result = self._spark.read.format("binaryFile").options(**_NO_PATTERNS).load([file.uri for file in files])
        named = result.select(F.substring_index(source, "/", -4).alias("name"), "content")
        return named.mapInArrow(lambda batches: read(open_files(batches)), schema)


def read_contents(
    spark: SparkSession, files: Iterable[RawFile], since: datetime | None = None, until: datetime | None = None
) -> RawContents:
    """Return the files that can be read; of each the lines observed in ``[since, until)`` are wanted."""
    since_ms, until_ms = (None if at is None else int(at.timestamp() * 1000) for at in (since, until))
    wanted = [
        FileRequest(file.name, file.cluster, file.hour, since_ms, until_ms, file.local_path, file.uri, file.size)
        for file in files
        if file.is_readable
    ]
    return RawContents(spark, wanted)


def share_out(files: Iterable[FileRequest], cores: int) -> list[list[FileRequest]]:
    """Return the files in slices of about equal size, at least one for each core, in the order of their hours.

    So a task writes few hours, and the tables' files stay few without a shuffle.
    """
    ordered = sorted(files, key=lambda file: (file.hour, file.name))
    weights = [file.size + _OPENING_BYTES for file in ordered]
    total = sum(weights)
    count = min(len(ordered), max(cores, -(-total // _TASK_BYTES)))
    slices: list[list[FileRequest]] = [[] for _ in range(count)]
    before = 0
    for file, weight in zip(ordered, weights, strict=True):
        slices[(before + weight // 2) * count // total].append(file)
        before += weight
    return [one for one in slices if one]


def show_error(error: Exception) -> str:
    """Return one line about an error that is valid UTF-8: it may name a path that is not."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text.encode("utf-8", "backslashreplace").decode()


def _slices(content: pa.Buffer) -> Iterator[bytes]:
    for start in range(0, content.size, CHUNK_BYTES):
        yield content.slice(start, min(CHUNK_BYTES, content.size - start)).to_pybytes()
