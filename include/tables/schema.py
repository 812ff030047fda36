"""The type of a table, and column types that several tables share."""

from __future__ import annotations

from dataclasses import dataclass, field

PARALLELISM = "MAP<STRING, INT>"
AGGREGATE_NUMBERS = ("min", "max", "avg", "sum", "skew")
AGGREGATES = f"ARRAY<STRUCT<id: STRING, {', '.join(f'{name}: DOUBLE' for name in AGGREGATE_NUMBERS)}>>"


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table: ``layer.name`` lives at ``<lake>/<layer>/<name>``.

    Attributes:
        columns: column name -> Spark SQL type, in table order.
        keys: columns that identify a row.
        partition_by: partition columns.
        checks: constraint name -> SQL expression that every row satisfies.
    """

    name: str
    columns: dict[str, str]
    keys: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)

    @property
    def relative_path(self) -> str:
        """Path below the lake's root."""
        return self.name.replace(".", "/")


VERTEX_SAMPLE = {"cluster": "STRING", "job_id": "STRING", "vertex_id": "STRING", "observed_at": "TIMESTAMP"}
DATE_HOUR = {"date": "DATE", "hour": "INT"}


def is_by_day(table: Table) -> bool:
    """Whether the files of a day hold rows of several hours, which their statistics tell apart."""
    return "hour" in table.columns and "hour" not in table.partition_by
