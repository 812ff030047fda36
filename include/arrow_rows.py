"""Rows of the lake's tables as Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from include.tables import AGGREGATES, Table

_NUMBERS = ("min", "max", "avg", "sum", "skew")
_KINDS = {
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "MAP<STRING, INT>": pa.map_(pa.string(), pa.int32()),
    "MAP<STRING, BIGINT>": pa.map_(pa.string(), pa.int64()),
    "MAP<STRING, DOUBLE>": pa.map_(pa.string(), pa.float64()),
    "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "ARRAY<DOUBLE>": pa.list_(pa.float64()),
    "ARRAY<BOOLEAN>": pa.list_(pa.bool_()),
    AGGREGATES: pa.list_(pa.struct([("id", pa.string()), *((name, pa.float64()) for name in _NUMBERS)])),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Return the columns of a table as Arrow has them."""
    return arrow_columns(table.columns)


def arrow_columns(columns: Mapping[str, str]) -> pa.Schema:
    """Return columns as Arrow has them: name -> type, as SQL."""
    return pa.schema([(name, _KINDS[kind]) for name, kind in columns.items()])


def arrow_rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as Arrow; a column that a row lacks is null."""
    schema = arrow_schema(table)
    made = {field.name: pa.array([_arrow_value(row.get(field.name)) for row in rows], field.type) for field in schema}
    return pa.table(made, schema=schema)


def _arrow_value(value: Any) -> Any:
    """Return a value as Arrow takes it; text that is no valid Unicode is marked, so that no row is lost for it."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, Mapping):
        return [(valid_text(name), _arrow_value(one)) for name, one in value.items()]
    return value


def valid_text(text: str) -> str:
    """Return text with each half of a surrogate pair, which JSON may hold alone, as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
