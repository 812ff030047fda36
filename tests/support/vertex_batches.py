"""Rows of vertices in Arrow, as a Python worker of Spark is given them, and the windows that it makes of them."""

from __future__ import annotations

import pyarrow as pa

from models.observing.metric_table import COLUMNS
from spark_jobs.job_history.job_shapes import JobShapes
from spark_jobs.job_history.vertex_rows import VERTEX_KEY
from spark_jobs.job_history.vertex_windows import read_windows

START_S = 1_763_632_800  # a whole hour
_KINDS = {"is_source": pa.bool_(), "window_s": pa.int32()}
KEYS = [(name, _KINDS.get(name, pa.string())) for name in VERTEX_KEY]
ROWS = pa.schema([*KEYS, ("observed_at", pa.timestamp("us", "UTC")), *[(name, pa.float64()) for name in COLUMNS]])
WINDOWS = pa.schema(
    [
        *[(name, _KINDS.get(name, pa.string())) for name in ("job", "operator", "job_id", "window_s")],
        ("window_start", pa.timestamp("us", "UTC")),
        ("samples", pa.int32()),
        ("observed_processing_rate_per_s", pa.float64()),
        ("target_data_rate_per_s", pa.float64()),
        ("target_is_lower_bound", pa.bool_()),
        *[(name, pa.float64()) for name in ("pending_records", "outstanding_records", "age_s", "latency_ms")],
    ]
)


def polled(
    job: str, second: float, job_id: str = "a", operator: str = "Source: x", **values: float
) -> dict[str, object]:
    """A row of a vertex with windows of a minute."""
    key = dict(
        zip(VERTEX_KEY, ("c", job, operator, job_id, job_id * 3, operator.startswith("Source"), 60), strict=True)
    )
    return {**key, "observed_at": round(1e6 * (START_S + second)), **values}


def batches(rows: list[dict[str, object]], size: int = 1000) -> list[pa.RecordBatch]:
    columns = [pa.array([row.get(field.name) for row in rows]).cast(field.type) for field in ROWS]
    whole = pa.RecordBatch.from_arrays(columns, schema=ROWS)
    return [whole.slice(first, size) for first in range(0, len(rows), size)]


def windows(
    rows: list[dict[str, object]], size: int = 1000, shapes: JobShapes | None = None
) -> list[dict[str, object]]:
    return [row for batch in read_windows(batches(rows, size), WINDOWS, shapes or {}) for row in batch.to_pylist()]
