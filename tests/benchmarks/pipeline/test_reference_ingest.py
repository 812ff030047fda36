"""The parallelism in force at a moment, as the reference of ingestion looks it up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.pipeline.ingest import select_read
from benchmarks.pipeline.reference_ingest import JobTables

JOBS = JobTables(pa.table({}), np.array([0, 0, 2]), np.array([100, 200, 150]), np.array([1, 4, 8]))


@pytest.mark.parametrize(
    ("vertex", "at_us", "at_begin", "expected"),
    [
        (0, 99, True, 0),
        (0, 100, True, 1),
        (0, 100, False, 0),
        (0, 200, False, 1),
        (0, 200, True, 4),
        (0, 10**6, False, 4),
        (1, 150, True, 0),  # a vertex between two that are known
        (2, 149, True, 0),
        (2, 151, False, 8),
    ],
)
def test_the_period_that_is_in_force(vertex: int, at_us: int, at_begin: bool, expected: int) -> None:
    assert JOBS.look_up(np.array([vertex]), np.array([at_us]), is_at_begin=at_begin).tolist() == [expected]


def test_all_rows_of_a_vertex_with_an_unread_reply_are_left_out_and_rows_about_jobs_stay() -> None:
    rows = pa.table({"job_id": ["a", "a", "b"], "vertex_id": ["1", "2", "1"]})
    assert select_read(rows, rows.slice(0, 1)).to_pylist() == rows.slice(1).to_pylist()
    assert select_read(rows.drop("vertex_id"), rows) == rows.drop("vertex_id")
