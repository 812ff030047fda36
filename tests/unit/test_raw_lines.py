"""The content of raw files as numbered lines, whatever their size, line ends and damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pytest
from examples import TIMES

from include import raw_lines
from include.raw_lines import DamagedFileError, UnreadableFileError, number_lines, read_text_lines

TEXT = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\nlast'
LINES = ['{"a":1}', "", '{"b":"é"}', "last"]


def packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


def chunks(content: bytes, size: int = 2**20) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


def lines_of(name: str, content: bytes, size: int = 2**20) -> list[tuple[int, str]]:
    result: list[tuple[int, str]] = []
    for first, lines in number_lines(name, chunks(content, size)):
        result += enumerate(lines.to_pylist(), first)
    return result


@pytest.mark.parametrize("piece", [1, 3, 8, 2**20])
def test_lines_are_the_same_however_the_file_is_cut(monkeypatch, piece):
    monkeypatch.setattr(raw_lines, "PIECE_BYTES", piece)
    numbered = list(enumerate(LINES, 1))
    assert lines_of("x.jsonl", TEXT, piece) == numbered
    assert lines_of("x.jsonl.gz", packed(TEXT), piece) == numbered
    assert lines_of("x.jsonl.gz", packed(TEXT[:5]) + packed(TEXT[5:]), piece) == numbered
    assert lines_of("x.jsonl", TEXT + b"\n", piece) == numbered


def test_an_empty_text_has_no_lines():
    assert lines_of("x.jsonl.gz", packed(b"")) == []


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (packed(TEXT)[:-4], "ends inside a gzip member"),
        (packed(TEXT)[:-8] + bytes(8), "incorrect data check"),
        (packed(TEXT) + b"rest", "incorrect header check"),
        (TEXT, "incorrect header check"),
    ],
)
def test_damage_is_told_after_the_whole_lines_before_it(damaged, says):
    result: list[str] = []
    pieces = (lines.to_pylist() for _, lines in number_lines("x.jsonl.gz", chunks(damaged)))
    with pytest.raises(DamagedFileError, match=says):
        result.extend(line for piece in pieces for line in piece)
    assert result == LINES[: len(result)]


def test_what_is_no_utf8_stays_as_it_came():
    [(_, lines)] = number_lines("x.jsonl", [b"\xff\xfe\n"])
    assert lines.cast(pa.binary()).to_pylist() == [b"\xff\xfe"]


def zipped(text: bytes) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as folder:
        folder.writestr("x.jsonl", text)
    return made.getvalue()


def arrow_packed(codec: str) -> bytes:
    return pa.compress(TEXT * 40, codec, asbytes=True)


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (packed(packed(TEXT)), "gzip within gzip"),
        (bz2.compress(TEXT), "bzip2"),
        (lzma.compress(TEXT), "xz"),
        (zipped(TEXT), "zip"),
        (arrow_packed("zstd"), "zstd"),
        (arrow_packed("lz4"), "lz4"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_another_compression_is_named_once_and_is_no_thousand_lines(content: bytes, form: str) -> None:
    for name, one in (("x.jsonl", content), ("x.jsonl.gz", packed(content))):
        with pytest.raises(DamagedFileError, match=rf"compressed \({form}\): plain lines are read, or gzip"):
            lines_of(name, one)


def test_a_file_that_ends_within_a_character_keeps_the_lines_before_it(tmp_path) -> None:
    (tmp_path / "x.jsonl").write_bytes("first\nzwölf".encode()[:-3])
    (tmp_path / "y.jsonl.gz").write_bytes(packed("first\n€".encode()[:-1]))
    assert list(read_text_lines(tmp_path / "x.jsonl")) == ["first", "zw\ufffd"]
    assert list(read_text_lines(tmp_path / "y.jsonl.gz")) == ["first", "\ufffd"]


@pytest.mark.covers("ingest_review 2.7")
def test_a_flipped_bit_keeps_every_line_that_decompresses_before_it():
    random_ = random.Random(1)
    text = b"".join(b'{"number":%d,"junk":"%x"}\n' % (n, random_.getrandbits(200)) for n in range(2_000))
    whole = packed(text)
    lost, flips = 0, 80 * TIMES
    for _ in range(flips):
        place = random_.randrange(20, len(whole))
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random_.randrange(8)
        before = zlib.decompressobj(31).decompress(whole[:place])
        sound = before[: before.rfind(b"\n") + 1].decode().splitlines()
        result: list[str | bytes] = []
        try:
            for _, lines in number_lines("x.jsonl.gz", chunks(bytes(damaged))):
                result += lines.cast(pa.binary()).to_pylist()
        except DamagedFileError:
            lost += 1
        assert [line.decode() for line in result[: len(sound)]] == sound
    assert lost > 0.95 * flips


def test_a_line_without_an_end_takes_no_more_memory_than_is_kept_of_it(monkeypatch):
    monkeypatch.setattr(raw_lines, "LONGEST_LINE_BYTES", 1000)
    monkeypatch.setattr(raw_lines, "RETAINED_OF_LONG_LINE_BYTES", 10)
    text = b"first\n" + b"x" * 5_000 + b"\nlast"
    assert lines_of("x.jsonl", text, 100) == [(1, "first"), (2, "x" * 10), (3, "last")]
    assert lines_of("x.jsonl", text[:3_000], 100) == [(1, "first"), (2, "x" * 10)]


def test_gzip_is_known_by_its_first_bytes():
    assert lines_of("x.jsonl", packed(TEXT)) == list(enumerate(LINES, 1))


def expand(size: int) -> bytes:
    """Return a file of a few kilobytes that expands to one line of so many bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([packer.compress(b" " * 2**20) for _ in range(size // 2**20)] + [packer.flush()])


def test_a_file_that_expands_beyond_measure_is_read_no_further():
    with pytest.raises(DamagedFileError, match="more than 500 times its size"):
        lines_of("x.jsonl.gz", expand(100 * 2**20))


def test_the_same_reply_a_million_times_is_no_bomb():
    text = b"".join(b'{"at":%d,"body":"%s"}\n' % (number, b"x" * 300) for number in range(250_000))
    assert len(lines_of("x.jsonl.gz", gzip.compress(text, 9))) == 250_000


def test_what_cannot_be_opened_is_told_apart_from_what_is_damaged(tmp_path):
    with pytest.raises(UnreadableFileError, match="IsADirectoryError"):
        list(read_text_lines(tmp_path))
    (tmp_path / "x.jsonl").write_bytes(b"one\n\xff\xfe")
    assert list(read_text_lines(tmp_path / "x.jsonl")) == ["one", "\ufffd\ufffd"]
