"""Mutations of whole files: how they are packed, what they are called, and what else lies beside them."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Packing:
    """How lines become a file.

    Attributes:
        suffix: of the file's name.
        pack: gives its bytes.
        is_sound: whether every line can be read.
    """

    suffix: str
    pack: Callable[[random.Random, bytes], bytes]
    is_sound: bool = True


def _gzip(text: bytes) -> bytes:
    return gzip.compress(text, compresslevel=1, mtime=0)


def _without_last_newline(text: bytes) -> bytes:
    """Return a text whose last line has no end; an empty one would be no line without it."""
    return text if text.endswith(b"\n\n") else text.removesuffix(b"\n")


def _members(random_: random.Random, text: bytes) -> bytes:
    place = random_.randrange(len(text))
    return _gzip(text[:place]) + _gzip(b"") + _gzip(text[place:])


def _flip(random_: random.Random, text: bytes) -> bytes:
    packed = bytearray(_gzip(text))
    packed[random_.randrange(20, len(packed))] ^= 1 << random_.randrange(8)
    return bytes(packed)


def _cut(random_: random.Random, text: bytes) -> bytes:
    packed = _gzip(text)
    return packed[: random_.randrange(20, len(packed))]


PACKINGS = {
    "file: gzip": Packing(".jsonl.gz", lambda _, text: _gzip(text)),
    "file: plain": Packing(".jsonl", lambda _, text: text),
    "file: no newline at the end": Packing(".jsonl.gz", lambda _, text: _gzip(_without_last_newline(text))),
    "file: carriage returns": Packing(".jsonl", lambda _, text: text.replace(b"\n", b"\r\n")),
    "file: several members": Packing(".jsonl.gz", _members),
    "file: gzip, called plain": Packing(".jsonl", lambda _, text: _gzip(text)),
    "file: rest after the end": Packing(".jsonl.gz", lambda _, text: _gzip(text) + b"more"),
    "file: plain, called gzip": Packing(".jsonl.gz", lambda _, text: text, is_sound=False),
    "file: a bit flipped": Packing(".jsonl.gz", _flip, is_sound=False),
    "file: cut": Packing(".jsonl.gz", _cut, is_sound=False),
    "file: UTF-16": Packing(".jsonl", lambda _, text: text.decode("latin-1").encode("utf-16"), is_sound=False),
}
STEMS = [
    b"poll", b"a[1]", b"b{2,3}", b"c\\4", b"d:5", b"e*+%41 ?", b"f\n", b"caf\xe9", b"\xff\xfe", "émoji 💥".encode(),
    b"'quoted\"", b"$HOME", b"-rf", b"x" * 200, b"g=h", b"~", b"#1", b"&amp;",
]  # fmt: skip
"""Beginnings of file names: all that the file system allows."""


def put_beside(random_: random.Random, hour: Path) -> None:
    """Put things that are no raw files into the folder of an hour and those above it."""
    hour.mkdir(parents=True, exist_ok=True)
    things: list[Callable[[], object]] = [
        lambda: (hour / "gone.jsonl.gz").symlink_to("nowhere"),
        lambda: (hour / "loop.jsonl").symlink_to("loop.jsonl"),
        lambda: os.mkfifo(hour / "pipe.jsonl"),
        (hour / "folder.jsonl.gz").mkdir,
        (hour / "empty.jsonl.gz").touch,
        lambda: (hour / "b.json.gz").write_bytes(b"x"),
        lambda: (hour / "B.JSONL.GZ").write_bytes(b"x"),
        lambda: (hour / ".half.jsonl.gz").write_bytes(b"x"),
        (hour.parent / "hour=24").mkdir,
        lambda: (hour.parent / "hour=7").symlink_to(hour.parent),
        (hour.parent / f"HOUR={hour.name[-2:]}").mkdir,
        (hour.parent.parent / "date=2026-13-01").mkdir,
        lambda: (hour.parent.parent / "loop").symlink_to("loop"),
    ]
    for thing in random_.sample(things, k=random_.randrange(1, len(things) + 1)):
        thing()
