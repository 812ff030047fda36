"""Metrics that Spark's reader types get the same verdict as those that Arrow types."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.raw_parsing.parsed_lines import parse_lines, read_left_lines, replace_left_lines, select_lines
from spark_jobs.raw_parsing.raw_contents import read_contents
from spark_jobs.raw_parsing.raw_files import list_files
from tests.spark.raw_builders import WORK, PolledJob, metric, utc, write

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
BODIES = {
    "good": [metric("numRecordsIn", 7.5), metric("busyTimeMsPerSecond", 1050.0)],
    "none": [],
    "one value not given": [{"id": "numRecordsIn", "sum": 1.0}],
    "several faults": [metric("numRecordsIn", -5.0), metric("a.busyTimeMsPerSecond", 1051.0), metric("x", "many")],
    "not measured": [metric("busyTimeMsPerSecond", "NaN"), metric("x", "NaN")],
}


def test_it_does_not_matter_which_reader_typed_the_values(spark, settings):
    """Arrow takes a body that begins with its bracket, Spark also one with a blank before it."""
    job = PolledJob(running_at=START)
    texts = [blank + json.dumps(body) for body in BODIES.values() for blank in ("", " ")]
    lines = [job.vertex_line(WORK, START + timedelta(seconds=second), text) for second, text in enumerate(texts)]
    write(Path(settings.paths.raw), START, lines)
    contents = read_contents(spark, list_files(spark, settings.paths.raw, [START]))
    parsed = parse_lines(contents, settings.ingest)
    rows = select_lines(replace_left_lines(parsed, read_left_lines(parsed, settings.ingest)))
    columns = ("fault", "line", "body", "metrics", "value_faults", "metric_values", "not_measured")
    result = [row.asDict(recursive=True) for row in rows.orderBy("observed_at").select(*columns).collect()]
    by_arrow, by_spark = (dict(zip(BODIES, result[first::2], strict=True)) for first in (0, 1))
    assert by_arrow == by_spark
    assert by_arrow["good"]["metrics"] == BODIES["good"]
    reasons = {name: [fault["reason"] for fault in row["value_faults"] or ()] for name, row in by_arrow.items()}
    assert reasons == {
        "good": [],
        "none": [],
        "one value not given": [],
        "several faults": ["value_negative"] * 4 + ["value_huge"] * 3 + ["wrong_type"] * 4,
        "not measured": ["value_nan"] * 4,
    }
    assert [row["metric_values"] for row in by_arrow.values()] == [10, 0, 1, 15, 10]
    assert [row["not_measured"] for row in by_arrow.values()] == [0, 0, 0, 0, 1]
