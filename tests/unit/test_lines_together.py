"""Lines of several raw files that are read at once: the rows of each file are those that it has alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_jobs.raw_parsing import typed_lines
from spark_jobs.raw_parsing.raw_contents import FileRequest
from spark_jobs.raw_parsing.typed_lines import READ_COLUMNS, ReplyLimits
from tests.unit.test_typed_lines import TYPES

SCHEMA = pa.schema([(name, TYPES[kind]) for name, kind in READ_COLUMNS.items()])
HOUR = datetime(2026, 11, 20, 9, tzinfo=UTC)
FIRST_MS = int(HOUR.timestamp() * 1000)
METRIC = json.dumps([{"id": "numRecordsIn", "min": 2.0, "max": 2.0, "avg": 2.0, "sum": 2.0, "skew": 0.0}])
STATE = json.dumps({"jid": "a", "name": "orders", "state": "RUNNING", "vertices": []})


def content(number: int) -> bytes:
    """A poll of a small cluster; some files have a line that is no JSON, or no UTF-8."""
    replies = [("vertex_metrics", METRIC), ("job", STATE), ("vertex_metrics", "[]")]
    lines = [
        json.dumps({"observed_at_ms": FIRST_MS + 60_000 * number + at, "kind": kind, "status": 200, "body": body})
        for at, (kind, body) in enumerate(replies)
    ]
    odd = {1: b"no JSON\n", 2: b"\xff\xfe\n"}.get(number, b"")
    return gzip.compress(odd + "\n".join(lines).encode())


def a_file(number: int, since_ms: int | None = None) -> FileRequest:
    name = f"cluster=c/date=2026-11-20/hour=09/{number}.jsonl.gz"
    return FileRequest(name, "c", HOUR, since_ms, None, None, "", 0)


def read(*files: tuple[FileRequest, bytes]) -> list[dict[str, object]]:
    def chunks(text: bytes) -> Iterator[bytes]:
        yield text

    given = ((file, chunks(text)) for file, text in files)
    made = pa.Table.from_batches(typed_lines._read_together(given, SCHEMA, ReplyLimits(1e15, 0)), SCHEMA)
    return sorted(made.to_pylist(), key=lambda row: (row["source_file"], row["line_number"] or 0))


def test_rows_of_files_that_are_read_at_once_are_those_of_each_alone() -> None:
    files = [(a_file(number), content(number)) for number in range(5)]
    files.append((a_file(5), content(5)[:-12]))  # cut off
    files.append((a_file(6), b""))
    files += [(a_file(number, FIRST_MS + 60_000 * number + 1), content(number)) for number in (7, 8)]
    rows = read(*files)
    assert rows == [row for file in files for row in read(file)]
    of_files = [row for row in rows if row["line_number"] is None]
    assert [row["file_lines"] for row in of_files] == [3, 4, 4, 3, 3, 3, 0, 3, 3]
    assert [row["line_fault"] is not None for row in of_files] == [False] * 5 + [True] + [False] * 3
    assert sum(row["source_file"] == a_file(8).name for row in rows) == 3  # two lines of its time, and itself


def test_a_file_that_cannot_be_read_harms_none_that_is_read_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read_line_columns = typed_lines.read_line_columns

    def fail_at_odd(lines: pa.StringArray, *rest: object) -> dict[str, pa.Array]:
        if b"no JSON" in lines.cast(pa.binary()).to_pylist():
            raise MemoryError("too large")
        return read_line_columns(lines, *rest)  # type: ignore[arg-type]

    files = [(a_file(number), content(number)) for number in range(4)]
    expected = [row for row in read(*files) if row["source_file"] != a_file(1).name]
    monkeypatch.setattr(typed_lines, "read_line_columns", fail_at_odd)
    rows = read(*files)
    assert [row for row in rows if row["source_file"] != a_file(1).name] == expected
    (own,) = [row for row in rows if row["source_file"] == a_file(1).name]
    assert own["file_lines"] == 0
    assert own["line_fault"] == {"reason": "unreadable_file", "detail": "MemoryError: too large"}
