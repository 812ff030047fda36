"""The content of raw files as numbered lines, piece by piece, so that a large file never stands in memory as text."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

LINE_COLUMNS = {"source_file": "STRING", "line_number": "BIGINT", "line": "STRING"}
PIECE_BYTES = 16 * 2**20
_FED_BYTES = 2**20  # what zlib did not get to is copied at each step
_GZIP = 31  # zlib's code for "a gzip member, header and checksum included"


class DamagedFileError(Exception):
    """A compressed file cannot be read to its end; the message says why."""


def read_lines(contents: DataFrame) -> DataFrame:
    """Return every line of whole files; columns ``LINE_COLUMNS``.

    Args:
        contents: from :func:`spark_jobs.raw_parsing.raw_files.read_contents`.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name, content in zip(batch.column("source_file").to_pylist(), batch.column("content"), strict=True):
                try:
                    for first, lines in number_lines(name, content.as_buffer()):
                        numbers = pa.array(range(first, first + len(lines)), pa.int64())
                        yield pa.RecordBatch.from_arrays([pa.repeat(name, len(lines)), numbers, lines], [*LINE_COLUMNS])
                except DamagedFileError:
                    continue  # the lines before the damage were given

    return contents.select("source_file", "content").mapInArrow(
        read, ", ".join(f"{name} {kind}" for name, kind in LINE_COLUMNS.items())
    )


def number_lines(name: str, content: pa.Buffer) -> Iterator[tuple[int, pa.StringArray]]:
    """Yield the lines of a file in order, each time with the number of the first (the file's first line is 1).

    Args:
        name: of the file; one that ends with ``.gz`` is decompressed.
        content: its bytes.

    Raises:
        DamagedFileError: after all whole lines before the damage.
    """
    number = 1
    for text, end in _pieces(_decompress(content) if name.endswith(".gz") else _slices(content)):
        lines = _split(text, end)
        yield number, lines
        number += len(lines)


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Cut at the last newline of each chunk instead of where it ends; a piece is a text up to its ``end``."""
    carried = b""
    for chunk in chunks:
        text = carried + chunk
        end = text.rfind(b"\n") + 1
        if end:
            yield text, end
        carried = text[end:]
    if carried:
        yield carried, len(carried)


def _split(text: bytes, end: int) -> pa.StringArray:
    if text.find(b"\r", 0, end) >= 0:
        text = text[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = len(text)
    bounds = pa.array([0, end], pa.int32()).buffers()[1]
    piece = pa.Array.from_buffers(pa.binary(), 1, [None, bounds, pa.py_buffer(text)])  # no copy
    # What is no UTF-8 stays as it came: the reader of JSON refuses it.
    lines = pc.split_pattern(piece, b"\n").values.view(pa.string())
    return lines[: len(lines) - 1] if text.endswith(b"\n", 0, end) else lines


def _slices(content: pa.Buffer) -> Iterator[bytes]:
    for start in range(0, content.size, PIECE_BYTES):
        yield content.slice(start, min(PIECE_BYTES, content.size - start)).to_pybytes()


def _decompress(content: pa.Buffer) -> Iterator[bytes]:
    """Yield what the gzip members of a file hold."""
    member = zlib.decompressobj(_GZIP)
    try:
        for start in range(0, content.size, _FED_BYTES):
            rest = content.slice(start, min(_FED_BYTES, content.size - start)).to_pybytes()
            while rest:
                if member.eof:
                    member = zlib.decompressobj(_GZIP)
                yield member.decompress(rest, PIECE_BYTES)
                rest = member.unused_data if member.eof else member.unconsumed_tail
    except zlib.error as error:
        raise DamagedFileError(str(error)) from error
    if not member.eof:
        raise DamagedFileError("the file ends inside a gzip member")
