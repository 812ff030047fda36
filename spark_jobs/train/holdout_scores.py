"""Errors of the models on held-back rows: champion and challenger on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from models.arrays import Floats, Ints
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.capacity.conformal import LEVELS, Z
from models.recovery.latency import latency_errors
from spark_jobs.train.day_windows import JOB, OPERATOR
from spark_jobs.train.training_events import find_places

INSIDE = ("inside", "inside_95")  # of the levels of models.capacity.conformal.LEVELS


def bundle_rows(bundle: FleetBundle, rows: pd.DataFrame) -> Ints:
    """Return (n,) the place of each row's operator in the bundle's arrays, -1 where it is not there."""
    return find_places(rows, bundle.operators(), OPERATOR)


def capacity_at(bundle: FleetBundle | None, rows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return (n,) mean and (n, levels) calibrated half-widths of a window's capacity, records/s; NaN if not known."""
    mean, widths = np.full(len(rows), np.nan), np.full((len(rows), len(LEVELS)), np.nan)
    if bundle is None or not bundle.index:
        return mean, widths
    row = bundle_rows(bundle, rows)
    count = bundle.arrays["grid_count"]
    parallelism = rows["parallelism"].to_numpy(np.int64)
    known = (row >= 0) & (parallelism <= count[row]) & (count[row] > 0)
    begin = np.cumsum(count) - count
    at = begin[row[known]] + parallelism[known] - 1
    mean[known] = bundle.arrays["mean_per_s"][at]
    noise = bundle.arrays["scalars"][row[known], 3] * mean[known]
    scale = bundle.scale_at(row[known], bundle.grid_places()[at])
    widths[known] = np.hypot(bundle.arrays["sd_per_s"][at], noise)[:, None] * scale * Z
    return mean, widths


def linear_capacity_at(bundle: FleetBundle, rows: pd.DataFrame) -> Floats:
    """Return (n,) what a naive linear model says: the mean rate per instance that was observed, times parallelism."""
    counts = bundle.arrays["observed_count"]
    owner = np.repeat(np.arange(len(counts)), counts)
    per_instance = bundle.arrays["observed_per_s"] / np.maximum(bundle.arrays["observed"], 1)
    totals = np.bincount(owner, per_instance, minlength=len(counts))
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.append(totals / counts, np.nan)  # -1 finds the NaN at the end
    return np.asarray(rate[bundle_rows(bundle, rows)] * rows["parallelism"].to_numpy(float))


def score_capacities(held: pd.DataFrame, challenger: FleetBundle, champion: FleetBundle | None) -> pd.DataFrame:
    """Return one row per observation: ``idle``, errors of challenger, champion and linear model, NaN where
    one does not know it, and whether it lies inside the bands (1 or 0) of challenger and champion.
    """
    observed = held["capacity_per_s"].to_numpy(float)
    (mean, widths), (old_mean, old_widths) = capacity_at(challenger, held), capacity_at(champion, held)
    return held[[*OPERATOR, "idle"]].assign(
        error=np.abs(mean - observed) / observed,
        champion_error=np.abs(old_mean - observed) / observed,
        linear_error=np.abs(linear_capacity_at(challenger, held) - observed) / observed,
        **{name: _inside(mean, widths[:, at], observed) for at, name in enumerate(INSIDE)},
        **{f"champion_{name}": _inside(old_mean, old_widths[:, at], observed) for at, name in enumerate(INSIDE)},
    )


def _inside(mean: Floats, width: Floats, seen: Floats) -> Floats:
    """Return (n,) 1 inside a band, 0 outside, NaN without one."""
    inside = np.abs(mean - seen) <= width
    return np.asarray(np.where(np.isfinite(mean) & np.isfinite(width), inside, np.nan), float)


def score_latencies(held: pd.DataFrame, challenger: FleetBundle, champion: FleetBundle | None) -> pd.DataFrame:
    """Return one row per held-back window: latency errors of challenger and champion, NaN where one has no model."""
    parts = [
        mine[list(JOB)].assign(
            error=_latency_errors(challenger, key, mine), champion_error=_latency_errors(champion, key, mine)
        )
        for key, mine in held.groupby(list(JOB))
    ]
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*JOB, "error", "champion_error"], dtype=float)


def _latency_errors(bundle: FleetBundle | None, key: tuple[object, ...], rows: pd.DataFrame) -> Floats:
    cluster, job = map(str, key)
    try:
        if bundle is None:
            raise BundleError("no bundle")
        predicted = bundle.for_job(cluster, job).latency.latency_ms(rows["utilisation"].to_numpy(float))
    except BundleError:
        return np.full(len(rows), np.nan)
    return latency_errors(predicted, rows["latency_ms"].to_numpy(float))
