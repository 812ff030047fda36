"""Recent scores of the forecasts, for the training's run in MLflow: coverage and pinball loss, as numbers and a plot.

The forecast stage writes the record of its backtests to ``gold.forecast_scores`` every hour; a training of the night
shows what has become of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pyspark.sql import functions as F

from include.tables import FORECAST_SCORES
from spark_jobs.lake import Lake
from spark_jobs.plot_text import plot_text

LOOK_BACK = timedelta(days=7)
CHAMPIONS = "champions"
MEASURES = ("coverage_q90", "pinball_q90", "mase")
TARGET_COVERAGE = 0.9


def forecast_record(lake: Lake, as_of: datetime) -> pd.DataFrame:
    """Return means over the series, one row per pass and method: as_of, method, series and MEASURES.

    ``champions`` stands for what was used.  Passes at or after ``as_of`` are left out.
    """
    since = as_of - LOOK_BACK
    recent = lake.read(FORECAST_SCORES).where(
        F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
        & (F.col("as_of") >= F.lit(since))
        & (F.col("as_of") < F.lit(as_of))
    )
    spoken = F.explode(
        F.when(F.col("champion"), F.array(F.col("method"), F.lit(CHAMPIONS))).otherwise(F.array(F.col("method")))
    )
    means = [F.avg(name).alias(name) for name in MEASURES]
    return (
        recent.select("as_of", spoken.alias("method"), *MEASURES)
        .groupBy("as_of", "method")
        .agg(F.count("*").alias("series"), *means)
        .orderBy("as_of", "method")
        .toPandas()
    )


def forecast_measures(record: pd.DataFrame) -> dict[str, float]:
    """Return the newest pass's means over the champions by name; nothing when there was none."""
    used = record[record["method"] == CHAMPIONS]
    if used.empty:
        return {}
    newest = used.iloc[-1]
    result = {f"forecast_{name}": float(newest[name]) for name in MEASURES}
    return {name: value for name, value in result.items() if np.isfinite(value)}


def forecast_figure(record: pd.DataFrame) -> Figure:
    """Draw coverage of q90 and its pinball loss over the passes, a line per method."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for method, rows in record.groupby("method"):
        style = {"color": "black", "lw": 2.0} if method == CHAMPIONS else {"lw": 1.0}
        for axis, name in ((top, "coverage_q90"), (bottom, "pinball_q90")):
            axis.plot(rows["as_of"], rows[name].astype(float), ".-", label=plot_text(str(method)), **style)
    top.axhline(TARGET_COVERAGE, color="grey", lw=0.8, ls="--")
    top.set_ylabel("share at or below q90")
    bottom.set_ylabel("pinball loss of q90 over mean rate")
    top.legend(fontsize=7)
    figure.autofmt_xdate()
    return figure
