"""The reader of raw files, with a note of every line that it parses: it works in processes of their own."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.raw_parsing import typed_lines
from spark_jobs.raw_parsing.raw_contents import FileChunks

READ = typed_lines._read_together


def read_and_note(notes: str, files: Iterator[FileChunks], **rules: Any) -> Iterator[pa.RecordBatch]:
    """Read as the parser does; each reading of a file leaves one note."""
    numbers: dict[str, list[int]] = {}

    def note(each: Iterator[FileChunks]) -> Iterator[FileChunks]:
        for file, chunks in each:
            numbers.setdefault(file.name, [])
            yield file, chunks

    for batch in READ(note(files), **rules):
        for name, number in zip(
            *(batch.column(one).to_pylist() for one in ("source_file", "line_number")), strict=True
        ):
            numbers[name] += [] if number is None else [number]
        yield batch
    for name, own in numbers.items():
        Path(notes, uuid.uuid4().hex).write_text(json.dumps([name, own]), encoding="utf-8")


def note_in(folder: Path) -> partial[Iterator[pa.RecordBatch]]:
    """Return what stands in for the parser's reader of files."""
    folder.mkdir()
    return partial(read_and_note, str(folder))


def count_notes(folder: Path) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """Return how often each file was read, and how often each of its lines became a row."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()]
    files = Counter(name for name, _ in notes)
    return files, Counter((name, number) for name, numbers in notes for number in numbers)
