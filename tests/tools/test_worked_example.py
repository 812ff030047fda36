"""The worked example: its parts on the recording, and the page against the recording."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pyspark.sql import Row

from models.bundle.job_models import CapacityCurve
from tools.worked_example import SHOWN, describe_curve, describe_differences, find_raw_line, format_number

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDING = REPOSITORY / "data" / "recording"


def first_reply() -> tuple[Row, dict]:
    """Return the first reply with metrics as a row of bronze would name it, and the line."""
    path = min(RECORDING.glob("cluster=*/date=*/hour=*/*.jsonl.gz"))
    with gzip.open(path, "rt") as lines:
        line = next(result for result in map(json.loads, lines) if result["kind"] == "vertex_metrics")
    observed_at = datetime.fromtimestamp(line["observed_at_ms"] / 1000, UTC)
    name = str(path.relative_to(RECORDING))
    return Row(source_file=name, observed_at=observed_at, vertex_id=line["vertex_id"]), line


def test_raw_line_is_the_recorded_one_with_fewer_metrics() -> None:
    row, line = first_reply()
    text, count = find_raw_line(RECORDING, row)
    result = json.loads(text)
    assert {key: result[key] for key in ("observed_at_ms", "job_id", "vertex_id", "status")} == {
        key: line[key] for key in ("observed_at_ms", "job_id", "vertex_id", "status")
    }
    everything = json.loads(line["body"])
    assert count == len(everything) > len(SHOWN)
    assert json.loads(result["body"]) == [metric for metric in everything if metric["id"] in SHOWN]


def test_differences_are_those_of_the_counters() -> None:
    def sample(second: int, records: float, busy_ms: float) -> Row:
        values = dict(zip(SHOWN[:3], (records, 2 * records, busy_ms), strict=True))
        at = datetime(2026, 11, 20, 19, 0, second, tzinfo=UTC)
        return Row(observed_at=at, metrics=[Row(id=name, sum=value) for name, value in values.items()])

    result = describe_differences(sample(1, 10_000, 500), sample(16, 25_500, 9_500))
    assert [row["difference"] for row in result] == ["15,500", "31,000", "9,000", "15.000 s"]
    assert result[0] == {"name": "`numRecordsIn`", "before": "10,000", "after": "25,500", "difference": "15,500"}


def test_curve_shows_where_it_was_seen() -> None:
    grid = np.arange(1, 7)
    curve = CapacityCurve(grid, 1000.0 * grid, 10.0 * grid, np.array([2]), np.array([1990.0]), 1000.0)
    assert describe_curve(curve) == [
        {"parallelism": 1, "seen": "-", "mean": "1,000", "sd": "10"},
        {"parallelism": 2, "seen": "1,990", "mean": "2,000", "sd": "20"},
        {"parallelism": 3, "seen": "-", "mean": "3,000", "sd": "30"},
        {"parallelism": 4, "seen": "-", "mean": "4,000", "sd": "40"},
    ]


def test_numbers_are_written_for_people() -> None:
    assert [format_number(value) for value in (None, 0.0, 0.12345, 12.0, 1234.5)] == ["-", "0", "0.1235", "12", "1,234"]


def test_the_page_shows_a_line_of_the_recording() -> None:
    page = (REPOSITORY / "docs" / "worked_example.md").read_text()
    shown = json.loads(page.split("```json\n")[1].split("\n```")[0])
    replies = []
    for path in RECORDING.glob("cluster=*/date=*/hour=*/*.jsonl.gz"):
        with gzip.open(path, "rt") as lines:
            replies += [line for line in map(json.loads, lines) if line["observed_at_ms"] == shown["observed_at_ms"]]
    (line,) = [reply for reply in replies if reply["vertex_id"] == shown["vertex_id"]]
    assert json.loads(shown["body"]) == [one for one in json.loads(line["body"]) if one["id"] in SHOWN]
