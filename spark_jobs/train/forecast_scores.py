"""Recent scores of the forecasts, for the training's run in MLflow: coverage and pinball loss, as numbers and a plot.

The forecast stage writes the record of its backtests to ``gold.forecast_scores`` once a day, and of a source that comes
later when it comes; a training of the night shows what has become of it.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from include.lake_table import is_between
from include.tables import FORECAST_SCORES
from include.utc import floor_day
from spark_jobs.lake import Lake
from spark_jobs.plot_text import plot_text
from spark_jobs.source_inputs.source_windows import SERIES

LOOK_BACK = timedelta(days=7)
CHAMPIONS = "champions"
MEASURES = ("coverage_q90", "pinball_q90", "mase")
TARGET_COVERAGE = 0.9


def forecast_record(lake: Lake, as_of: datetime) -> pd.DataFrame:
    """Return means over the series, one row per date and method: date, method, series and MEASURES.

    Of a date the newest contest of each series counts. ``champions`` stands for what was used.  Passes at or after
    ``as_of`` are left out.
    """
    since = floor_day(as_of - LOOK_BACK)
    columns, where = ["as_of", *SERIES, "method", "champion", *MEASURES], is_between("as_of", since, as_of)
    rows = lake.few(FORECAST_SCORES).read(columns, since.date(), as_of.date(), where).to_pandas()
    rows = rows[rows["as_of"] < as_of].assign(date=rows["as_of"].dt.tz_localize(None).dt.normalize())
    newest = rows[rows["as_of"] == rows.groupby(["date", *SERIES])["as_of"].transform("max")]
    used = newest[newest["champion"] == True].assign(method=CHAMPIONS)  # noqa: E712 - may be null
    of_methods = pd.concat([newest, used]).groupby(["date", "method"])
    result = of_methods[list(MEASURES)].agg(_average).assign(series=of_methods.size()).reset_index()
    kinds = {"date": "datetime64[ns]", "series": int, **dict.fromkeys(MEASURES, float)}
    ordered: pd.DataFrame = result[["date", "method", "series", *MEASURES]].astype(kinds)
    return ordered


def _average(values: pd.Series) -> float:
    """Return the mean of what is known; rows come in no order, and any order gives the same."""
    known = values.dropna()
    return math.fsum(known) / len(known) if len(known) else float("nan")


def forecast_measures(record: pd.DataFrame) -> dict[str, float]:
    """Return the newest date's means over the champions by name; nothing when there was none."""
    used = record[record["method"] == CHAMPIONS]
    if used.empty:
        return {}
    newest = used.iloc[-1]
    result = {f"forecast_{name}": float(newest[name]) for name in MEASURES}
    return {name: value for name, value in result.items() if np.isfinite(value)}


def forecast_figure(record: pd.DataFrame) -> Figure:
    """Draw coverage of q90 and its pinball loss over the dates, a line per method."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for method, rows in record.groupby("method"):
        style = {"color": "black", "lw": 2.0} if method == CHAMPIONS else {"lw": 1.0}
        for axis, name in ((top, "coverage_q90"), (bottom, "pinball_q90")):
            axis.plot(rows["date"], rows[name].astype(float), ".-", label=plot_text(str(method)), **style)
    top.axhline(TARGET_COVERAGE, color="grey", lw=0.8, ls="--")
    top.set_ylabel("share at or below q90")
    bottom.set_ylabel("pinball loss of q90 over mean rate")
    top.legend(fontsize=7)
    figure.autofmt_xdate()
    return figure
