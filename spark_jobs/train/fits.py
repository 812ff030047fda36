"""Fits on the executors: whole batches of operators per task, started from the champion's hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from models.capacity.capacity_samples import pack
from models.capacity.curves import fit_curves
from models.latency import fit_latency
from spark_jobs.job_inputs.one_by_one import apply_with_fallback
from spark_jobs.train.training_data import JOB, OPERATOR

CAPACITY_COLUMNS = {
    **dict.fromkeys(OPERATOR, "STRING"),
    "slope_per_s": "DOUBLE",
    "length_scale": "DOUBLE",
    "signal_ratio": "DOUBLE",
    "noise_share": "DOUBLE",
    "at_bound": "BOOLEAN",
    "idle": "BOOLEAN",
    "mean_per_s": "ARRAY<DOUBLE>",
    "sd_per_s": "ARRAY<DOUBLE>",
    "observed": "ARRAY<INT>",
    "observed_count": "ARRAY<INT>",
    "observed_per_s": "ARRAY<DOUBLE>",
}
LATENCY_COLUMNS = {**dict.fromkeys(JOB, "STRING"), "knots": "ARRAY<DOUBLE>", "latency_at_knots_ms": "ARRAY<DOUBLE>"}
OPERATORS_PER_BATCH = 256
OperatorKey = tuple[str, str, str]


def ddl(columns: Mapping[str, str]) -> str:
    """Return columns as a DDL string."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def batches(operators: int, parallel: int) -> int:
    """Return how many batches to fit: enough to keep every task slot busy, few enough to be worth a task each."""
    return max(1, min(operators, max(parallel, -(-operators // OPERATORS_PER_BATCH))))


def fit_capacities(points: DataFrame, start: Mapping[OperatorKey, float], batch_count: int) -> DataFrame:
    """Fit the capacity curve of every operator.

    Args:
        points: of data.capacity_points, with ``top``, the largest parallelism of each operator's grid.
        start: length scales of the champion.
        batch_count: number of tasks.
    """
    shared = points.sparkSession.sparkContext.broadcast(dict(start))
    batch = F.pmod(F.xxhash64(*OPERATOR), F.lit(batch_count)).alias("batch")

    def fit_batch(rows: pd.DataFrame) -> pd.DataFrame:
        return apply_with_fallback(
            rows, OPERATOR, lambda mine: capacity_rows(mine, shared.value), list(CAPACITY_COLUMNS)
        )

    return points.groupBy(batch).applyInPandas(fit_batch, ddl(CAPACITY_COLUMNS)).select(*CAPACITY_COLUMNS)


def capacity_rows(rows: pd.DataFrame, start: Mapping[OperatorKey, float]) -> pd.DataFrame:
    """Fit one batch, all of its operators at once; one row per operator comes back."""
    ordered = rows.sort_values([*OPERATOR, "parallelism"], ignore_index=True)
    owner = ordered.groupby(list(OPERATOR), sort=True).ngroup().to_numpy()
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    keys = ordered.loc[first, [*OPERATOR, "idle"]].reset_index(drop=True)
    samples = pack(owner, ordered["parallelism"], ordered["count"], ordered["mean_per_s"], ordered["squares"])
    known = np.array([start.get(key, np.nan) for key in keys[list(OPERATOR)].itertuples(index=False, name=None)])
    top = ordered.loc[first, "top"].to_numpy(np.int64)
    curves = fit_curves(samples, ordered.loc[first, "largest"].to_numpy(float), int(top.max()), known)
    ends = np.append(first[1:], len(ordered))

    def points(column: str) -> pd.Series[Any]:
        values = ordered[column].to_numpy()
        return pd.Series([values[begin:end] for begin, end in zip(first, ends, strict=True)], dtype=object)

    return keys.assign(
        slope_per_s=curves.slope_per_s,
        length_scale=curves.length_scale,
        signal_ratio=curves.signal_ratio,
        noise_share=curves.noise_share,
        at_bound=curves.at_bound,
        mean_per_s=[mean[:end] for mean, end in zip(curves.mean_per_s, top, strict=True)],
        sd_per_s=[sd[:end] for sd, end in zip(curves.sd_per_s, top, strict=True)],
        observed=points("parallelism"),
        observed_count=points("count"),
        observed_per_s=points("mean_per_s"),
    )[list(CAPACITY_COLUMNS)]


def fit_latencies(bins: DataFrame, batch_count: int) -> DataFrame:
    """Fit the latency curve of every job from its bins of utilisation."""
    batch = F.pmod(F.xxhash64(*JOB), F.lit(batch_count)).alias("batch")
    fitted = bins.groupBy(batch).applyInPandas(_fit_latency_batch, ddl(LATENCY_COLUMNS))
    return fitted.select(*LATENCY_COLUMNS)


def latency_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Fit one batch; one row per job comes back."""
    found = []
    for key, mine in rows.groupby(list(JOB), sort=True):
        columns = (mine[name].to_numpy(float) for name in ("utilisation", "latency_ms", "windows"))
        model = fit_latency(*columns)
        found.append((*map(str, key), model.knots, model.latency_at_knots_ms))
    return pd.DataFrame(found, columns=list(LATENCY_COLUMNS))


def _fit_latency_batch(rows: pd.DataFrame) -> pd.DataFrame:
    return apply_with_fallback(rows, JOB, latency_rows, list(LATENCY_COLUMNS))
