"""Ratios of the edges of job graphs, from the latest windows of each job."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.graph import GraphError, JobGraph, Operator
from models.arrays import Floats
from models.topology import learn_edge_ratios
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.training_data import JOB

RECENT = timedelta(days=7)  # ratios follow what a job does now
EDGE_COLUMNS = {
    **dict.fromkeys(JOB, "STRING"),
    "upstream": "STRING",
    "operator": "STRING",
    "ratio": "DOUBLE",  # null where nothing settles the edge
}
_DDL = ", ".join(f"{name} {kind}" for name, kind in EDGE_COLUMNS.items())


def fit_edge_ratios(observations: DataFrame, graphs: DataFrame, as_of: datetime) -> DataFrame:
    """Return one row per edge of the latest graphs, with EDGE_COLUMNS.

    Args:
        observations: of training_data.training_observations.
        graphs: of training_data.latest_graphs.
        as_of: end of the windows.
    """
    nodes = graphs.groupBy(*JOB).agg(F.sort_array(F.collect_list(F.struct("operator", "upstream"))).alias("graph"))
    recent = observations.where(~F.col("held") & (F.col("window_start") >= timestamp_column(as_of - RECENT)))
    measured = recent.select(*JOB, "operator", "window_start", "rate_per_s", "output_per_s")
    # The graph goes with one row of a job, not with each of its windows.
    listed = nodes.select(*JOB, "graph", *[F.lit(None).alias(name) for name in _MEASURED])
    rows = measured.select(*JOB, F.lit(None).alias("graph"), *_MEASURED).unionByName(listed)
    return rows.groupBy(*JOB).applyInPandas(fit_job_edges, _DDL)


def _drop_sent_as_taken(graph: JobGraph, taken_per_s: Floats, sent_per_s: Floats) -> Floats:
    """Return what operators took, (W, O), NaN where an earlier release had what a source sent in its place.

    Those windows have one number twice. They tell of a ratio of one, which is none of a source that other windows show
    to send more or less than it takes.
    """
    taken = taken_per_s.copy()
    for at in map(graph.position, graph.sources):
        is_twice = taken[:, at] == sent_per_s[:, at]
        if (np.isfinite(taken[:, at]) & np.isfinite(sent_per_s[:, at]) & ~is_twice).any():
            taken[is_twice & (taken[:, at] > 0), at] = np.nan
    return taken


_MEASURED = ("operator", "window_start", "rate_per_s", "output_per_s")


def fit_job_edges(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the edges of one job."""
    empty = pd.DataFrame({name: pd.Series(dtype=object) for name in EDGE_COLUMNS})
    listed = rows["graph"].dropna()
    if listed.empty:  # none of its graphs is known any more
        return empty
    try:
        graph = JobGraph.from_operators([Operator(one["operator"], tuple(one["upstream"])) for one in listed.iloc[0]])
    except GraphError:
        return empty
    windows = rows[rows["operator"].isin(graph.names)]
    taken, sent = (
        windows.pivot_table(index="window_start", columns="operator", values=name, dropna=False)
        .reindex(columns=graph.names)
        .to_numpy(float)
        if len(windows)
        else np.zeros((0, len(graph.names)))
        for name in ("rate_per_s", "output_per_s")
    )
    result = learn_edge_ratios(graph, _drop_sent_as_taken(graph, taken, sent), sent)
    cluster, job = rows["cluster"].iloc[0], rows["job"].iloc[0]
    edges = [(cluster, job, up, down, ratio) for (up, down), ratio in result.items()]
    return pd.DataFrame(edges, columns=list(EDGE_COLUMNS)) if edges else empty
