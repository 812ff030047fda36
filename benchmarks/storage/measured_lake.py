"""What the folder of a `make run` holds: rows, bytes and files of each table, and of what they are multiples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from include.flink.raw_format import Endpoint
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    BY_PERSONS,
    CONTROL_LOG,
    CONTROLLED,
    CONTROLLER_MEMORY,
    FORECAST_SCORES,
    FORECASTS,
    JOB_GRAPHS,
    JOBS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    PLANS,
    POLICY_MEMORY,
    RESCALES,
    TABLES,
    Table,
)

POLL, HOUR, PLAN, DECISION, EVALUATION = "poll", "hour", "plan", "decision", "evaluation"
RAW_FILES = "raw files"
BY_UNIT: dict[str, tuple[Table, ...]] = {
    POLL: (BRONZE_METRICS, BRONZE_JOB_EVENTS),
    HOUR: (OBSERVATIONS, JOBS, JOB_GRAPHS, OPERATOR_KEYS, RESCALES),
    PLAN: (PLANS, FORECASTS, FORECAST_SCORES, POLICY_MEMORY),
    DECISION: (CONTROL_LOG,),
    EVALUATION: (CONTROLLER_MEMORY,),
}
"""Unit -> tables whose rows grow with it, for each job."""
SMALL = tuple(
    table for table in (*TABLES, *CONTROLLED, *BY_PERSONS) if all(table not in tables for tables in BY_UNIT.values())
)
"""Not extrapolated: a few rows a job and day or week, a row a raw file, or what went wrong."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows that were measured, for each unit of one job.

    Attributes:
        name: of the table, or ``raw files``.
        unit: of what there are multiples.
        rows, size_bytes: of the table.
        files: in all of its partitions.
        partitions: 0 where it has none.
        units: of all jobs that the rows are of; for a decision or evaluation the rows themselves.
    """

    name: str
    unit: str
    rows: int
    size_bytes: int
    files: int
    partitions: int
    units: int

    @property
    def bytes_per_unit(self) -> float:
        """Bytes of one unit of one job."""
        return self.size_bytes / self.units if self.units else 0.0

    @property
    def bytes_per_row(self) -> float:
        """Bytes of a row."""
        return self.size_bytes / self.rows if self.rows else 0.0


def measure_folder(out: Path) -> list[Measured]:
    """Measure the lake and the raw files below the folder of a `make run`."""
    lake = out / "lake"
    units = {
        POLL: _count(lake, BRONZE_JOB_EVENTS, ["job_id", "observed_at"], f"kind = '{Endpoint.JOB}'"),
        HOUR: _count(lake, JOBS, ["cluster", "job", "date", "hour"]),
        PLAN: _count(lake, PLANS, ["cluster", "job", "as_of"]),
    }
    raw = [path for path in (out / "raw").rglob("*.gz") if path.is_file()]
    size = sum(path.stat().st_size for path in raw)
    result = [Measured(RAW_FILES, POLL, 0, size, len(raw), len({path.parent for path in raw}), units[POLL])]
    for unit, tables in BY_UNIT.items():
        result += [_measure(lake, table, unit, units.get(unit)) for table in tables if _is_there(lake, table)]
    return result


def _measure(lake: Path, table: Table, unit: str, units: int | None) -> Measured:
    added = pa.table(DeltaTable(lake / table.relative_path).get_add_actions(flatten=True))
    rows = sum(added["num_records"].to_pylist())
    partitions = added.select([name for name in added.column_names if name.startswith("partition.")])
    count = len({tuple(one.values()) for one in partitions.to_pylist()})
    sizes = sum(added["size_bytes"].to_pylist())
    return Measured(table.name, unit, rows, sizes, len(added), count, rows if units is None else units)


def _is_there(lake: Path, table: Table) -> bool:
    return DeltaTable.is_deltatable(str(lake / table.relative_path))


def _count(lake: Path, table: Table, columns: list[str], where: str = "true") -> int:
    """Return how many different values some columns have together, in the rows of a condition."""
    if not _is_there(lake, table):
        return 0
    scanned = pa.RecordBatchReader.from_stream(DeltaTable(lake / table.relative_path).scan(columns, where)).read_all()
    plain = [pc.cast(scanned[name], pa.string()) if _is_view(scanned[name]) else scanned[name] for name in columns]
    return len(pa.table(plain, names=columns).group_by(columns).aggregate([]))


def _is_view(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_string_view(column.type))
