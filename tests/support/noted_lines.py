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
from spark_jobs.raw_parsing.raw_contents import FileToRead


def read_and_note(notes: str, file: FileToRead, chunks: Iterator[bytes], **rules: Any) -> Iterator[pa.RecordBatch]:
    """Read as the parser does; each reading of a file leaves one note."""
    numbers: list[int] = []
    for batch in typed_lines._read_file(file, chunks, **rules):
        numbers += [number for number in batch.column("line_number").to_pylist() if number is not None]
        yield batch
    Path(notes, uuid.uuid4().hex).write_text(json.dumps([file.name, numbers]), encoding="utf-8")


def note_in(folder: Path) -> partial[Iterator[pa.RecordBatch]]:
    """Return what stands in for the parser's reader of one file."""
    folder.mkdir()
    return partial(read_and_note, str(folder))


def count_notes(folder: Path) -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """Return how often each file was read, and how often each of its lines became a row."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()]
    files = Counter(name for name, _ in notes)
    return files, Counter((name, number) for name, numbers in notes for number in numbers)
