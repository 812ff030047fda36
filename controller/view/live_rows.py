"""The windows and states of a cluster's jobs as :mod:`include.live_windows` holds them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from controller.view.job_view import JobView
from include.domain.graph import JobGraph
from include.live_windows import SCHEMA, LiveJob
from models.policies.observations import Observations


def list_live_jobs(views: Mapping[str, JobView]) -> dict[str, LiveJob]:
    """Return the jobs that are polled by name."""
    polled = {name: view.seen for name, view in views.items()}
    return {name: LiveJob(one.state, one.polled_at_ms / 1000) for name, one in polled.items() if one is not None}


def list_live_rows(cluster: str, views: Mapping[str, JobView]) -> pa.Table:
    """Return the windows of jobs, a row for each operator that was seen in one."""
    tables = [SCHEMA.empty_table()]
    for name, view in views.items():
        graph, windows = None if view.seen is None else view.seen.graph, view.observations
        if graph is not None and windows is not None and windows.parallelism.shape[1] == len(graph.names):
            tables.append(_rows_of(cluster, name, graph, windows))
    return pa.concat_tables(tables)


def _rows_of(cluster: str, job: str, graph: JobGraph, windows: Observations) -> pa.Table:
    rows, operators = np.nonzero(windows.parallelism)
    names, sources = np.array(graph.names), np.isin(graph.names, graph.sources)
    values = {
        "cluster": [cluster] * len(rows),
        "job": [job] * len(rows),
        "operator": names[operators],
        "window_start": windows.window_start_s[rows].astype("datetime64[s]"),
        "window_s": np.full(len(rows), windows.window_s),
        "parallelism": windows.parallelism[rows, operators],
        "is_source": sources[operators],
        "observed_processing_rate_per_s": windows.processing_rate_per_s[rows, operators],
        "true_processing_rate_per_s": windows.true_processing_rate_per_s[rows, operators],
        "target_data_rate_per_s": windows.target_data_rate_per_s[rows, operators],
        "busy_share": windows.busy_share[rows, operators],
        "pending_records": windows.pending_records[rows, operators],
        "age_s": windows.latency_ms[rows, operators] / 1000.0,
    }
    columns = [  # NaN: nobody knows
        pa.array(values[field.name], field.type, from_pandas=pa.types.is_floating(field.type)) for field in SCHEMA
    ]
    return pa.table(columns, schema=SCHEMA)
