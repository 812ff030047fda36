"""Windows of a job and day as one value: nothing of them is lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.train.day_windows import pack_rows, unpack_windows

Row = tuple[str, int, float | None, bool | None]
NUMBER = st.none() | st.floats(width=64)
ROW = st.tuples(st.text(max_size=5), st.integers(0, 2**33), NUMBER, st.none() | st.booleans())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=3))
def test_unpacked_windows_are_those_that_were_packed(
    days: list[list[Row]],
) -> None:
    tables = [
        pa.table(
            {
                "operator": pa.array([row[0] for row in day], pa.string()),
                "window_start": pa.array([1_000_000 * row[1] for row in day], pa.timestamp("us", "UTC")),
                "busy_share": pa.array([row[2] for row in day], pa.float64()),
                "is_source": pa.array([row[3] for row in day], pa.bool_()),
            }
        )
        for day in days
    ]
    whole = pa.concat_tables(tables)
    unpacked = unpack_windows([pack_rows(one) for one in tables])
    assert unpacked["start_s"].to_pylist() == [row[1] for day in days for row in day]
    for name in ("operator", "window_start", "is_source"):
        assert unpacked[name].to_pylist() == whole[name].to_pylist()
    assert unpacked["busy_share"].is_null().to_pylist() == whole["busy_share"].is_null().to_pylist()
    bits = [one["busy_share"].fill_null(0.0).to_numpy().view(np.int64).tolist() for one in (unpacked, whole)]
    assert bits[0] == bits[1]
