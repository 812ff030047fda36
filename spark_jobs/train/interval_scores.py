"""Calibration of the capacity intervals, forward in time, and what they then cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include.settings import Training
from models.arrays import Floats
from models.bundle import FleetBundle
from models.capacity.busy_windows import TRUSTED
from models.capacity.interval_calibration import Place, learn_scales
from models.conformal import LEVELS, Z
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.build_bundle import Assembled
from spark_jobs.train.holdout_scores import bundle_rows, capacity_at
from spark_jobs.train.training_data import POINT, scored_windows

WINDOWS_PER_POINT = 3
"""Windows of one parallelism resemble each other: so many of each are enough, and none decides alone."""
_RESIDUAL_COLUMNS = "window_start TIMESTAMP, place INT, residual DOUBLE"
_MIN_ROWS = 30  # of both halves of the hours ahead


def forward_residuals(observations: DataFrame, since: datetime, training: Training, trial: FleetBundle) -> DataFrame:
    """Return standardised residuals of busy windows from ``since`` on, as a trial of before predicts them.

    Windows of an operator that is lightly used would show how little it varies, not how far off it is near saturation:
    they would make the intervals of all others too narrow.

    Args:
        observations: of the training.
        since: end of what the trial was trained on.
        training: the settings.
        trial: its bundle, not calibrated.
    """
    is_busy = ~F.col("idle") & (F.col("busy_share") >= TRUSTED)
    later = scored_windows(observations, training).where((F.col("window_start") >= timestamp_column(since)) & is_busy)
    drawn = F.row_number().over(Window.partitionBy(*POINT).orderBy(F.xxhash64(F.unix_timestamp("window_start"))))
    some = later.withColumn("drawn", drawn).where(F.col("drawn") <= WINDOWS_PER_POINT)
    shared = observations.sparkSession.sparkContext.broadcast(trial)

    def standardise(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in frames:
            yield standardise_rows(rows, shared.value)

    return some.select(*POINT, "window_start", "capacity_per_s").mapInPandas(standardise, _RESIDUAL_COLUMNS)


def standardise_rows(rows: pd.DataFrame, trial: FleetBundle) -> pd.DataFrame:
    """Return time, place and standardised residual of the rows whose operator and parallelism a trial knows."""
    mean, widths = capacity_at(trial, rows)
    known = np.isfinite(mean)
    residual = (rows["capacity_per_s"].to_numpy(float) - mean)[known] / (widths[known, 0] / Z[0])
    begin = np.cumsum(trial.arrays["grid_count"]) - trial.arrays["grid_count"]
    at = begin[bundle_rows(trial, rows)[known]] + rows["parallelism"].to_numpy(np.int64)[known] - 1
    place = trial.grid_places()[at] if known.any() else np.zeros(0, np.int64)
    return pd.DataFrame({"window_start": rows["window_start"][known], "place": place, "residual": residual})


def calibrate_bundle(fitted: Assembled, residuals: pd.DataFrame) -> FleetBundle:
    """Return the bundle with intervals that would have held the residuals of :func:`forward_residuals`."""
    return fitted.bundle.with_interval_scale(_learn(fitted, residuals))


def measure_coverage(fitted: Assembled, residuals: pd.DataFrame) -> pd.DataFrame:
    """Return what intervals cover that were calibrated on the earlier half of the hours ahead, in the later half.

    One row per place and level: ``place``, ``level``, ``covered`` (NaN with too few windows), ``windows``.
    """
    middle = residuals["window_start"].median() if len(residuals) else None
    earlier, later = residuals[residuals["window_start"] < middle], residuals[residuals["window_start"] >= middle]
    scale = _learn(fitted, earlier)
    absolute, place = np.abs(later["residual"].to_numpy(float)), later["place"].to_numpy(np.int64)
    enough = min(len(earlier), len(later)) >= _MIN_ROWS
    rows = []
    for column, level in enumerate(LEVELS):
        inside = absolute <= (scale[:, column] * Z[column])[place]
        for name, mine in (("all", place >= 0), *((one.name.lower(), place == one) for one in Place)):
            covered = float(inside[mine].mean()) if enough and mine.any() else float("nan")
            rows.append({"place": name, "level": level, "covered": covered, "windows": int(mine.sum())})
    return pd.DataFrame(rows)


def coverage_measures(coverage: pd.DataFrame) -> dict[str, float]:
    """Return rows of :func:`measure_coverage` by names of metrics."""
    levels, places = coverage["level"].to_numpy(float), coverage["place"]
    names = [f"coverage_{100.0 * level:.0f}_{place}" for level, place in zip(levels, places, strict=True)]
    return dict(zip(names, coverage["covered"].to_numpy(float).tolist(), strict=True))


def coverage_figure(coverage: pd.DataFrame) -> Figure:
    """Draw what intervals cover beside what they promise, apart for the places."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    names = list(dict.fromkeys(coverage["place"]))
    for offset, (level, colour) in enumerate(zip(LEVELS, ("#2563a8", "#d1495b"), strict=True)):
        mine = coverage[coverage["level"] == level].set_index("place").loc[names]
        bars = axis.bar(np.arange(len(names)) + 0.4 * offset - 0.2, mine["covered"].fillna(0.0), 0.36, color=colour)
        axis.bar_label(bars, [_text(value) for value in mine["covered"]], fontsize=8)
        axis.axhline(level, color=colour, lw=0.8, ls="--", label=f"promised {level:.0%}")
    windows = coverage[coverage["level"] == LEVELS[0]].set_index("place").loc[names, "windows"]
    axis.set_xticks(np.arange(len(names)), [f"{name}\n{count:,} windows" for name, count in windows.items()])
    axis.set(ylim=(0, 1.1), ylabel="share of the hours ahead inside the interval")
    axis.legend(loc="lower right")
    return figure


def _text(covered: float) -> str:
    return "unknown" if np.isnan(covered) else f"{covered:.1%}"


def _learn(fitted: Assembled, residuals: pd.DataFrame) -> Floats:
    forward, place = residuals["residual"].to_numpy(float), residuals["place"].to_numpy(float).astype(np.int64)
    return learn_scales(forward, place, fitted.left_out, fitted.left_out_place)
