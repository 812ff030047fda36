"""Rows of many jobs brought together in the driver: whose each is, and in which order they stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.by_job import find_jobs, split_columns

JOBS = [("a", "one"), ("a", "two"), ("b", "one")]
ROWS = pa.table(
    {
        "cluster": ["b", "a", "c", "b", "a"],
        "job": ["one", "two", "one", "one", "three"],
        "operator": ["map", "src", "src", "src", "src"],
        "rate_per_s": [1.0, 2.0, 3.0, None, 5.0],
    }
)


def test_each_row_finds_its_job() -> None:
    assert find_jobs(ROWS, JOBS).tolist() == [2, 1, -1, 2, -1]
    assert find_jobs(ROWS.slice(0, 0), JOBS).tolist() == []


def test_rows_of_a_job_stand_in_their_order_and_a_job_without_any_has_none() -> None:
    first, second, third = split_columns(ROWS, ["operator", "rate_per_s"], JOBS)
    assert first is None
    assert second is not None
    assert third is not None
    assert second["operator"].tolist() == ["src"]
    assert third["operator"].tolist() == ["map", "src"]
    assert third["rate_per_s"][0] == 1.0
    assert np.isnan(third["rate_per_s"][1])


def test_no_rows_at_all() -> None:
    assert split_columns(ROWS.slice(0, 0), ["operator"], JOBS) == [None, None, None]
