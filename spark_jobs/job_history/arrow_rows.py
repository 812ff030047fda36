"""Rows that pure functions return, as Arrow for Spark; times are whole epoch milliseconds on their side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def to_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as Arrow; a column that a row lacks is null, and a time may be given in epoch microseconds."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def times_in_ms(rows: DataFrame) -> DataFrame:
    """Return rows with every timestamp as epoch milliseconds."""
    times = [name for name, kind in rows.dtypes if kind == "timestamp"]
    return rows.withColumns({name: F.unix_millis(name) for name in times})


def micros(ms: int | None) -> int | None:
    """Return epoch milliseconds as a timestamp of Spark holds them."""
    return None if ms is None else 1000 * ms
