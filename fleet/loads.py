"""What was measured of jobs in windows: load, busy share, backlog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COARSE_S = 1800
LOAD_COLUMNS = (
    *("cluster", "job", "window_start", "window_s", "is_source", "observed_processing_rate_per_s"),
    *("target_data_rate_per_s", "busy_share", "pending_records", "age_s", "parallelism"),
)


@dataclass(frozen=True, slots=True)
class LoadFact:
    """One window of a job.

    Attributes:
        at_s: its beginning, epoch seconds.
        load_per_s: records/s that arrived at all sources; None where one of them does not tell.
        busy_share: mean over the subtasks of the busiest operator.
        pending_records: backlog of all sources.
        slots: largest parallelism of its operators.
    """

    at_s: float
    until_s: float
    load_per_s: float | None
    busy_share: float | None
    pending_records: float | None
    lag_s: float | None
    slots: int | None


def sum_operators(windows: pa.Table) -> pa.Table:
    """Return a row for each window of a job, from rows of its operators with :data:`LOAD_COLUMNS`."""
    is_source = pc.fill_null(windows["is_source"], False)

    def of_sources(values: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.if_else(is_source, _known(values), None)

    rate = pc.coalesce(_known(windows["target_data_rate_per_s"]), _known(windows["observed_processing_rate_per_s"]))
    columns = {name: windows[name] for name in ("cluster", "job", "window_start", "window_s")}
    columns["load"] = of_sources(rate)
    columns["sources"] = pc.cast(is_source, pa.int32())
    columns["busy"] = _known(windows["busy_share"])
    columns["pending"] = of_sources(windows["pending_records"])
    columns["parallelism"] = windows["parallelism"]
    columns["age_s"] = of_sources(windows["age_s"])
    figures = [("load", "sum"), ("load", "count"), ("sources", "sum"), ("busy", "max"), ("pending", "sum")]
    figures += [("age_s", "max"), ("window_s", "max"), ("parallelism", "max")]
    return pa.table(columns).group_by(["cluster", "job", "window_start"]).aggregate(figures)


def coarsen_windows(windows: pa.Table) -> pa.Table:
    """Return rows of :func:`sum_operators` in half hours: of loads the mean, of all else the largest."""
    is_whole = pc.and_(pc.greater(windows["load_count"], 0), pc.equal(windows["load_count"], windows["sources_sum"]))
    columns = {name: windows[name] for name in ("cluster", "job", "busy_max", "pending_sum", "age_s_max")}
    columns["parallelism_max"] = windows["parallelism_max"]
    columns["window_start"] = pc.floor_temporal(windows["window_start"], multiple=30, unit="minute")
    columns["load"] = pc.if_else(is_whole, windows["load_sum"], None)
    largest = ("busy_max", "pending_sum", "age_s_max", "parallelism_max")
    figures = [("load", "mean"), ("load", "count"), *((name, "max") for name in largest)]
    made = pa.table(columns).group_by(["cluster", "job", "window_start"]).aggregate(figures)
    renamed = {"load_mean": "load_sum", **{f"{name}_max": name for name in largest}}
    made = made.rename_columns([renamed.get(name, name) for name in made.column_names])
    seconds = pa.array(np.full(len(made), COARSE_S))
    return made.append_column("sources_sum", made["load_count"]).append_column("window_s_max", seconds)


def load_of(row: Mapping[str, Any]) -> LoadFact:
    """Return a row of :func:`sum_operators` as a fact."""
    at_s = row["window_start"].timestamp()
    return LoadFact(
        at_s=at_s,
        until_s=at_s + row["window_s_max"],
        load_per_s=row["load_sum"] if row["load_count"] and row["load_count"] == row["sources_sum"] else None,
        busy_share=row["busy_max"],
        pending_records=row["pending_sum"],
        lag_s=row["age_s_max"],
        slots=row["parallelism_max"],
    )


def _known(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values with null for what is no finite number."""
    return pc.if_else(pc.fill_null(pc.is_finite(values), False), values, None)
