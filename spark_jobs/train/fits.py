"""Fits on the executors: whole batches of operators per task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from models.capacity.busy_windows import split_doubt
from models.capacity.capacity_samples import pack
from models.capacity.operator_curves import fit_operator_curves
from models.capacity.robust_means import reduce_windows
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
    "busiest_share": "DOUBLE",
    "mean_per_s": "ARRAY<DOUBLE>",
    "sd_per_s": "ARRAY<DOUBLE>",
    "observed": "ARRAY<INT>",
    "observed_count": "ARRAY<INT>",
    "observed_per_s": "ARRAY<DOUBLE>",
    "doubt": "ARRAY<DOUBLE>",
    "left_out": "ARRAY<DOUBLE>",
    "left_out_place": "ARRAY<INT>",
}
LATENCY_COLUMNS = {**dict.fromkeys(JOB, "STRING"), "knots": "ARRAY<DOUBLE>", "latency_at_knots_ms": "ARRAY<DOUBLE>"}
OPERATORS_PER_BATCH = 256


def ddl(columns: Mapping[str, str]) -> str:
    """Return columns as a DDL string."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def batches(operators: int, parallel: int) -> int:
    """Return how many batches to fit: enough to keep every task slot busy, few enough to be worth a task each."""
    return max(1, min(operators, max(parallel, -(-operators // OPERATORS_PER_BATCH))))


def fit_capacities(points: DataFrame, batch_count: int, *, leaves_out: bool = True) -> DataFrame:
    """Fit the capacity curve of every operator.

    Args:
        points: of train_fleet.grid_tops.
        batch_count: number of tasks.
        leaves_out: whether curves are also tried on points that were hidden from them.
    """
    batch = F.pmod(F.xxhash64(*OPERATOR), F.lit(batch_count)).alias("batch")

    def fit_batch(rows: pd.DataFrame) -> pd.DataFrame:
        return apply_with_fallback(
            rows, OPERATOR, lambda mine: capacity_rows(mine, leaves_out=leaves_out), list(CAPACITY_COLUMNS)
        )

    return points.groupBy(batch).applyInPandas(fit_batch, ddl(CAPACITY_COLUMNS)).select(*CAPACITY_COLUMNS)


def capacity_rows(rows: pd.DataFrame, *, leaves_out: bool = True) -> pd.DataFrame:
    """Fit one batch, all of its operators at once; one row per operator comes back."""
    ordered = rows.sort_values([*OPERATOR, "parallelism"], ignore_index=True)
    number = ordered.groupby(list(OPERATOR), sort=True).ngroup().to_numpy()
    operators = ordered.loc[np.flatnonzero(np.diff(number, prepend=-1))].reset_index(drop=True)
    windows = ordered["capacities_per_s"].map(len).to_numpy(np.int64)
    owner, parallelism, count, mean_per_s, squares = reduce_windows(
        np.repeat(number, windows),
        np.repeat(ordered["parallelism"].to_numpy(np.int64), windows),
        np.concatenate(ordered["capacities_per_s"].to_numpy()),
    )
    top = operators["top"].to_numpy(np.int64)
    busiest = ordered["busiest"].to_numpy(float)
    shared, doubt = split_doubt(number.astype(np.int64), busiest)
    curves = fit_operator_curves(
        pack(owner, parallelism, count, mean_per_s, squares, doubt=doubt),
        operators["largest"].to_numpy(float),
        operators["key_groups"].to_numpy(float),
        int(top.max()),
        shared_doubt=shared,
        leaves_out=leaves_out,
    )
    ends = np.flatnonzero(np.diff(owner, append=len(operators))) + 1

    def split(values: np.ndarray) -> pd.Series[Any]:
        return pd.Series(np.split(values, ends[:-1]), dtype=object)

    tried = [np.flatnonzero(np.isfinite(row)) for row in curves.left_out]
    return operators[[*OPERATOR, "idle"]].assign(
        busiest_share=ordered["busiest"].groupby(number).max().to_numpy(float),
        slope_per_s=curves.slope_per_s,
        length_scale=curves.length_scale,
        signal_ratio=curves.signal_ratio,
        noise_share=curves.noise_share,
        at_bound=curves.at_bound,
        mean_per_s=[mean[:end] for mean, end in zip(curves.mean_per_s, top, strict=True)],
        sd_per_s=[sd[:end] for sd, end in zip(curves.sd_per_s, top, strict=True)],
        observed=split(parallelism),
        observed_count=split(count),
        observed_per_s=split(mean_per_s),
        doubt=split(doubt),
        left_out=[row[at] for row, at in zip(curves.left_out, tried, strict=True)],
        left_out_place=[row[at] for row, at in zip(curves.left_out_place, tried, strict=True)],
    )[list(CAPACITY_COLUMNS)]


def fit_latencies(bins: DataFrame, batch_count: int) -> DataFrame:
    """Fit the latency curve of every job from its bins of utilisation."""
    batch = F.pmod(F.xxhash64(*JOB), F.lit(batch_count)).alias("batch")
    fitted = bins.groupBy(batch).applyInPandas(_fit_latency_batch, ddl(LATENCY_COLUMNS))
    return fitted.select(*LATENCY_COLUMNS)


def latency_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Fit one batch; one row per job comes back."""
    result = []
    for key, mine in rows.groupby(list(JOB), sort=True):
        columns = (mine[name].to_numpy(float) for name in ("utilisation", "latency_ms", "windows"))
        model = fit_latency(*columns)
        result.append((*map(str, key), model.knots, model.latency_at_knots_ms))
    return pd.DataFrame(result, columns=list(LATENCY_COLUMNS))


def _fit_latency_batch(rows: pd.DataFrame) -> pd.DataFrame:
    return apply_with_fallback(rows, JOB, latency_rows, list(LATENCY_COLUMNS))
