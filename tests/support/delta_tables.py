"""Delta tables of tests, written and read without Spark: milliseconds instead of a second each."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from include.tables import Table
from spark_jobs.lake import Lake

MADE_FROM = "made_from"
"""Column that names files of another table: they have other names in each lake."""

_folder = tempfile.TemporaryDirectory(prefix="tidewise-tables-")
_empty: dict[str, Path] = {}


def write_rows(lake: Lake, table: Table, rows: Iterable[Mapping[str, Any]], mode: str = "append") -> None:
    """Append rows (or overwrite the table with them); the columns that a row lacks are null.

    The table itself is made by the product, once for all tests, and copied.
    """
    path = Path(lake.path(table))
    if not path.exists():
        shutil.copytree(_empty_table(lake, table), path)
    target = DeltaTable(path)
    schema = pa.schema(target.schema().to_arrow())
    columns = {field.name: [_arrow_value(row.get(field.name), field.type) for row in rows] for field in schema}
    write_deltalake(target, pa.Table.from_pydict(columns, schema=schema), mode=mode)  # type: ignore[call-overload]


def list_writers(path: Path) -> set[str]:
    """Return the engines that committed rows to a table, as its log names them; not who merged its files."""
    result = set()
    for commit in sorted((path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        if any(one["add"]["dataChange"] for one in actions if "add" in one):
            result |= {one["commitInfo"]["engineInfo"] for one in actions if "commitInfo" in one}
    return result


def _empty_table(lake: Lake, table: Table) -> Path:
    if table.name not in _empty:
        own = Lake(lake.spark, _folder.name)
        own.ensure(table)
        _empty[table.name] = Path(own.path(table))
    return _empty[table.name]


def _arrow_value(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_map(kind) and isinstance(value, Mapping):
        return list(value.items())
    return value


def read_rows(lake: Path, table: Table) -> list[str] | None:
    """Return a table's rows as sorted JSON, None when there is no table."""
    root = str(lake / table.relative_path)  # of this machine, or of a bucket
    if not DeltaTable.is_deltatable(root):
        return None
    rows = DeltaTable(root).to_pyarrow_table().drop_columns([MADE_FROM] if MADE_FROM in table.columns else [])
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows.to_pylist())
