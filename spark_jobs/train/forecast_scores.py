"""Recent scores of the forecasts, for the training's run in MLflow: coverage and pinball loss, as numbers and a plot.

The forecast stage writes the record of its backtests to ``gold.forecast_scores`` every hour; a training of the night
shows what has become of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from include.lake_table import is_between
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
    columns, where = ["as_of", "method", "champion", *MEASURES], is_between("as_of", since, as_of)
    recent = lake.few(FORECAST_SCORES).read(columns, since.date(), as_of.date(), where)
    recent = recent.filter(pc.less(recent["as_of"], pa.scalar(as_of, recent["as_of"].type)))
    used = recent.filter(pc.fill_null(recent["champion"], False))
    renamed = used.set_column(1, "method", pa.array([CHAMPIONS] * len(used), pa.string()))
    both = pa.concat_tables([recent, renamed]).drop_columns(["champion"])
    lists = [("as_of", "count"), *((name, "list") for name in MEASURES)]
    rows = [
        (one["as_of"].replace(tzinfo=None), one["method"], one["as_of_count"], *_average_each(one))
        for one in both.group_by(["as_of", "method"]).aggregate(lists).to_pylist()
    ]
    result = pd.DataFrame(rows, columns=["as_of", "method", "series", *MEASURES])
    result = result.sort_values(["as_of", "method"], ignore_index=True)
    return result.astype({"as_of": "datetime64[ns]", "series": int, **dict.fromkeys(MEASURES, float)})


def _average_each(group: Mapping[str, Sequence[float | None]]) -> Iterator[float]:
    """Yield the mean of each measure, of those that are known; rows come in no order, and any order gives the same."""
    for name in MEASURES:
        known = [one for one in group[f"{name}_list"] if one is not None]
        yield math.fsum(known) / len(known) if known else float("nan")


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
