"""Rows as Spark sends them: an array without values has offsets of no bytes, and anything may lie behind them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.tables import JOB_GRAPHS, OPERATOR_KEYS, Table

TODAY = date(2026, 11, 20)


def as_spark_sends(array: pa.Array) -> pa.Array:
    """Return an array whose parts without values have offsets of no bytes, with other memory behind them."""
    junk = pa.py_buffer(np.full(64, -189153672, dtype=np.int32).tobytes())
    nothing = junk.slice(0, 0)
    if pa.types.is_string(array.type) and not len(array):
        return pa.Array.from_buffers(array.type, 0, [None, nothing, pa.py_buffer(b"")])
    if pa.types.is_list(array.type):
        buffers = array.buffers()[:2] if len(array) else [None, nothing]
        return pa.Array.from_buffers(array.type, len(array), buffers, children=[as_spark_sends(array.values)])
    return array


def make_rows(table: Table, lists: list[list[str]]) -> pa.Table:
    """Return rows of a table, one for each list, which all its columns of lists have."""
    rows: list[dict[str, Any]] = []
    for place, one in enumerate(lists):
        row: dict[str, Any] = dict.fromkeys(table.columns)
        row |= {name: one for name, kind in table.columns.items() if kind == "ARRAY<STRING>"}
        row |= {"cluster": "live", "job": "q2", "operator": str(place), "position": place, "date": TODAY}
        rows.append(row | {"observed_at": datetime(2026, 11, 20, 12, tzinfo=UTC), "hour": 12})
    made = arrow_rows(table, rows).combine_chunks()
    columns = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in made.columns]
    return pa.table([as_spark_sends(column) for column in columns], schema=made.schema)


@pytest.mark.parametrize("table", [JOB_GRAPHS, OPERATOR_KEYS], ids=lambda one: one.name)
@pytest.mark.parametrize("lists", [[], [[]], [[], []], [[], ["a"]]], ids=["no row", "one source", "two", "one fed"])
def test_jobs_whose_operators_have_no_upstream_are_written(tmp_path: Path, table: Table, lists: list[list[str]]):
    """Without a copy delta-rs ended with "range start index 18446744073520397944 out of range" now and then."""
    lake_table = LakeTable(str(tmp_path), table)
    lake_table.replace(make_rows(table, [["before"]]), f"date = '{TODAY}'")
    lake_table.replace(make_rows(table, lists), f"date = '{TODAY}'")
    rows = lake_table.read(["operator", "upstream"], TODAY, TODAY).to_pylist()
    assert sorted((one["operator"], one["upstream"]) for one in rows) == [
        (str(place), one) for place, one in enumerate(lists)
    ]
