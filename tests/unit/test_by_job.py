"""Rows of many jobs brought together in the driver: whose each is, and in which order they stand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_jobs.by_job import find_jobs, group_structs
from spark_jobs.plan_inputs.struct_arrays import rows_in

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


def test_rows_of_a_job_stand_in_their_order_and_a_job_without_any_has_null() -> None:
    grouped = group_structs(ROWS, ["operator", "rate_per_s"], JOBS)
    first, second, third = (row["rows"] for row in rows_in(pa.RecordBatch.from_arrays([grouped], names=["rows"])))
    assert first is None
    assert second["operator"].tolist() == ["src"]
    assert third["operator"].tolist() == ["map", "src"]
    assert third["rate_per_s"][0] == 1.0
    assert np.isnan(third["rate_per_s"][1])


def test_no_rows_at_all() -> None:
    assert group_structs(ROWS.slice(0, 0), ["operator"], JOBS).to_pylist() == [None, None, None]
