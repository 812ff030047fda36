"""``python -m tools.compare_runs OUT OTHER``: whether two runs wrote the same plans and rows, whatever code they ran.

Rows are compared as a set, table by table, without the columns that name the code, the run or the files it wrote.
Exit code 1 where something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cli.arguments import CommandParser

UNLIKE = frozenset({"code_version", "code_version_now", "made_from", "modified_at", "run_id", "seconds"})
"""Columns that two runs of the same data may have unlike."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one table of two runs.

    Attributes:
        name: of the table, below the lake.
        rows: of the first run.
        alone, others: rows of the first and of the second run that the other one has not.
    """

    name: str
    rows: int
    alone: int
    others: int

    def __str__(self) -> str:
        """Return the line that is printed."""
        return f"{self.name}: {self.rows:,} rows, only in the first {self.alone:,}, only in the second {self.others:,}"


def find_tables(out: Path) -> dict[str, Path]:
    """Return the Delta tables of a run by their names below its lake."""
    lake = out / "lake"
    return {log.parent.relative_to(lake).as_posix(): log.parent for log in sorted(lake.rglob("_delta_log"))}


def count_rows(table: Path) -> Counter[str]:
    """Return how often a table has each row, as JSON of its compared columns."""
    read = DeltaTable(str(table)).to_pyarrow_table()
    compared = read.select(sorted(set(read.column_names) - UNLIKE))
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in compared.to_pylist())


def compare_tables(first: Path, second: Path) -> Iterator[Difference]:
    """Yield a difference for each table that one of two runs has; a table that is missing has no rows."""
    tables = (find_tables(first), find_tables(second))
    for name in sorted({*tables[0], *tables[1]}):
        rows, other = (count_rows(each[name]) if name in each else Counter[str]() for each in tables)
        yield Difference(name, rows.total(), (rows - other).total(), (other - rows).total())


def read_plans(out: Path) -> Any:
    """Return ``plans.json`` of a run without the columns that may differ."""
    rows = json.loads((out / "plans.json").read_text(encoding="utf-8"))
    return [{key: value for key, value in row.items() if key not in UNLIKE} for row in rows]


def main(argv: Sequence[str]) -> int:
    """Compare, and print a line for each table; returns the exit code."""
    parser = CommandParser(prog="compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="folder that a `make run` has written, such as out")
    parser.add_argument("second", type=Path, help="the same of another run")
    chosen = parser.parse_args(argv)
    differences = list(compare_tables(chosen.first, chosen.second))
    has_same_plans = read_plans(chosen.first) == read_plans(chosen.second)
    print("\n".join(map(str, differences)))
    print(f"plans.json: {'the same' if has_same_plans else 'different'}")
    unlike = [one.name for one in differences if one.alone or one.others]
    print(f"compare: {len(differences) - len(unlike)} of {len(differences)} tables have the same rows")
    return int(bool(unlike) or not has_same_plans)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
