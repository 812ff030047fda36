"""What was measured of each job in its last window: load, busy share, backlog."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

JobKey = tuple[str, str]
LOAD_COLUMNS = (
    *("cluster", "job", "operator", "window_start", "window_s", "is_source", "observed_processing_rate_per_s"),
    *("target_data_rate_per_s", "busy_share", "pending_records", "latency_ms"),
)


@dataclass(frozen=True, slots=True)
class LoadFact:
    """One window of a job.

    Attributes:
        at_s: its end, epoch seconds.
        load_per_s: records/s that arrived at all sources; None where one of them does not tell.
        busy_share: mean over the subtasks of the busiest operator.
        pending_records: backlog of all sources.
        lag_s: age of the oldest backlog.
    """

    at_s: float
    load_per_s: float | None
    busy_share: float | None
    pending_records: float | None
    lag_s: float | None


def find_last_loads(windows: pa.Table) -> dict[JobKey, LoadFact]:
    """Return the last window of each job, from rows with :data:`LOAD_COLUMNS`."""
    last = windows.group_by(["cluster", "job"]).aggregate([("window_start", "max")])
    joined = windows.join(last, keys=["cluster", "job"])
    rows = joined.filter(pc.equal(joined["window_start"], joined["window_start_max"])).to_pylist()
    of_jobs: dict[JobKey, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_jobs.setdefault((row["cluster"], row["job"]), []).append(row)
    return {key: load_of(listed) for key, listed in of_jobs.items()}


def load_of(rows: Iterable[Mapping[str, Any]]) -> LoadFact:
    """Return the operators' rows of one window as a fact."""
    listed = list(rows)
    sources = [row for row in listed if row["is_source"]]
    rates = [_first(row["target_data_rate_per_s"], row["observed_processing_rate_per_s"]) for row in sources]
    known = [rate for rate in rates if rate is not None]
    busy = [row["busy_share"] for row in listed if _is_known(row["busy_share"])]
    pending = [row["pending_records"] for row in sources if _is_known(row["pending_records"])]
    ages_ms = [row["latency_ms"] for row in sources if _is_known(row["latency_ms"])]
    return LoadFact(
        at_s=max(row["window_start"].timestamp() + row["window_s"] for row in listed),
        load_per_s=sum(known) if known and len(known) == len(rates) else None,
        busy_share=max(busy, default=None),
        pending_records=sum(pending) if pending else None,
        lag_s=max(ages_ms) / 1000 if ages_ms else None,
    )


def _first(*values: float | None) -> float | None:
    return next((value for value in values if _is_known(value)), None)


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
