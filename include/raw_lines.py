"""The one reader of raw files: numbered lines, piece by piece, so that a large file never stands in memory as text.

What may be wrong with a file (a damaged or cut deflate stream, one that expands beyond measure, another compression,
one that cannot be opened or read) is a :class:`DamagedFileError` after the lines before it.  An empty file has no
lines, of a line without an end the beginning is kept, and bytes that are no UTF-8 are the reader's matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from include.domain.quarantine_rules import Rule
from include.place import is_object

PIECE_BYTES = 16 * 2**20
LONGEST_LINE_BYTES = 64 * 2**20
"""Of a longer line the beginning is kept, which is no JSON: so it is quarantined as malformed."""
RETAINED_OF_LONG_LINE_BYTES = 2**16
EXPANSION_MAX = 500
"""Replies compress to a tenth or less, the same reply again and again to 1/200; deflate reaches 1/1,030."""
CHUNK_BYTES = 2**20  # what zlib did not get to is copied at each step
_GZIP = 31  # zlib's code for "a gzip member, header and checksum included"
_GZIP_MAGIC = b"\x1f\x8b"
_NOT_READ = {
    **{_GZIP_MAGIC: "gzip within gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"},
    **{b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"},
}
"""First bytes of what would else be quarantined as thousands of lines that are no text."""


class DamagedFileError(Exception):
    """A file cannot be read to its end; the message says why, ``rule`` which rule it breaks."""

    rule = Rule.CORRUPT_FILE


class UnreadableFileError(DamagedFileError):
    """A file cannot be opened, or its disk does not give it."""

    rule = Rule.UNREADABLE_FILE


def number_lines(name: str, chunks: Iterable[bytes]) -> Iterator[tuple[int, pa.StringArray]]:
    """Yield the lines of a file in order, each time with the number of the first (the file's first line is 1).

    A file whose name ends with ``.gz``, or that begins as gzip does, is decompressed; its bytes come in pieces of at
    most ``PIECE_BYTES``.

    Raises:
        DamagedFileError: after all that was decompressed before the damage.
    """
    number = 1
    given = iter(chunks)
    first = next(given, b"")
    if not first:
        return
    is_gzip = name.endswith(".gz") or first.startswith(_GZIP_MAGIC)
    restored = chain([first], given)
    for text, end in _pieces(_refuse_packed(_decompress(restored) if is_gzip else restored)):
        lines = _split(text, end)
        yield number, lines
        number += len(lines)


def read_text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, in a folder or a bucket; bytes that are no UTF-8 are replaced.

    Raises:
        DamagedFileError: after all that was read before the damage.
    """
    for _, lines in number_lines(path.name, read_chunks(path)):
        for line in lines.cast(pa.binary()):
            yield line.as_py().decode(errors="replace")


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file.

    Raises:
        UnreadableFileError: it cannot be opened, or read to its end.
    """
    try:
        if not is_object(path) and path.exists() and not (path.is_file() or path.is_dir()):  # it may never end
            raise UnreadableFileError("no regular file")
        with path.open("rb") as binary:
            while chunk := binary.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise UnreadableFileError(f"{type(error).__name__}: {error.strerror or error}") from error


def _refuse_packed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    start = next(chunks, b"")
    for magic, form in _NOT_READ.items():
        if start.startswith(magic):
            raise DamagedFileError(f"its content is compressed ({form}): plain lines are read, or gzip of them")
    yield start
    yield from chunks


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Cut at the last newline of each chunk instead of where it ends; a piece is a text up to its ``end``."""
    carried, is_cut = b"", False
    damage: DamagedFileError | None = None
    given = iter(chunks)
    while True:
        try:
            chunk = next(given, None)
        except DamagedFileError as error:
            chunk, damage = None, error
        if chunk is None:
            break
        if is_cut:  # the rest of a line of which enough is kept
            newline = chunk.find(b"\n")
            if newline < 0:
                continue
            chunk, is_cut = chunk[newline:], False
        text = carried + chunk
        end = text.rfind(b"\n") + 1
        if end:
            yield text, end
        carried = text[end:]
        if len(carried) > LONGEST_LINE_BYTES:
            carried, is_cut = carried[:RETAINED_OF_LONG_LINE_BYTES], True
    if carried:
        yield carried, len(carried)
    if damage is not None:
        raise damage


def _split(text: bytes, end: int) -> pa.StringArray:
    if text.find(b"\r", 0, end) >= 0:
        text = text[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = len(text)
    bounds = pa.array([0, end], pa.int32()).buffers()[1]
    piece = pa.Array.from_buffers(pa.binary(), 1, [None, bounds, pa.py_buffer(text)])  # no copy
    # What is no UTF-8 stays as it came: the reader of JSON refuses it.
    lines = pc.split_pattern(piece, b"\n").values.view(pa.string())
    return lines[: len(lines) - 1] if text.endswith(b"\n", 0, end) else lines


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what the gzip members of a file hold, up to a damage."""
    member, packed, expanded = zlib.decompressobj(_GZIP), 0, 0
    for chunk in chunks:
        rest, packed = chunk, packed + len(chunk)
        while rest:
            if member.eof:
                member = zlib.decompressobj(_GZIP)
            before = member.copy()
            try:
                piece = member.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                yield from _before_damage(before, rest)
                raise DamagedFileError(str(error)) from error
            expanded += len(piece)
            if expanded > max(LONGEST_LINE_BYTES, EXPANSION_MAX * packed):
                raise DamagedFileError(f"it expands to more than {EXPANSION_MAX} times its size")
            yield piece
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise DamagedFileError("the file ends inside a gzip member")


def _before_damage(member: zlib._Decompress, damaged: bytes) -> Iterator[bytes]:
    """Yield what decompresses of bytes that are damaged: zlib returns nothing of a call that fails."""

    def is_sound(length: int) -> bool:
        try:
            member.copy().decompress(damaged[:length])
        except zlib.error:
            return False
        return True

    sound, unsound = 0, len(damaged)
    while unsound - sound > 1:
        middle = (sound + unsound) // 2
        sound, unsound = (middle, unsound) if is_sound(middle) else (sound, middle)
    yield member.decompress(damaged[:sound])
    rest = damaged[sound:unsound]
    try:
        while one := member.decompress(rest, 1):
            yield one
            rest = member.unconsumed_tail
    except zlib.error:
        return
