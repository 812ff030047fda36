"""Lines of raw files by their numbers, to find again what was passed over when they were parsed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import DataFrame

from include.raw_lines import DamagedFileError, number_lines
from spark_jobs.raw_parsing.raw_contents import FileChunks, RawContents

LINE_COLUMNS = {"source_file": "STRING", "line_number": "BIGINT", "line": "STRING"}


def read_lines(contents: RawContents) -> DataFrame:
    """Return every line that is UTF-8 of whole files; columns ``LINE_COLUMNS``."""
    return contents.read_all(_read_files, LINE_COLUMNS)


def _read_files(files: Iterator[FileChunks]) -> Iterator[pa.RecordBatch]:
    for file, chunks in files:
        with suppress(DamagedFileError):  # the lines before the damage are given
            for first, lines in number_lines(file.name, chunks):
                rows = [(number, line) for number, line in enumerate(_decode(lines), first) if line is not None]
                columns = [[file.name] * len(rows), [number for number, _ in rows], [line for _, line in rows]]
                kinds = (pa.string(), pa.int64(), pa.string())
                arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, [*LINE_COLUMNS])


def _decode(lines: pa.StringArray) -> Iterator[str | None]:
    for line in lines.cast(pa.binary()).to_pylist():
        try:
            yield line.decode()
        except UnicodeDecodeError:
            yield None
