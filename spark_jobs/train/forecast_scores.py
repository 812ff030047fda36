"""Recent scores of the forecasts, for the training's run in MLflow: coverage and pinball loss, as numbers and a plot.

The forecast stage writes the record of its backtests to ``gold.forecast_scores`` once a day, and of a source that comes
later when it comes; a training of the night shows what has become of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from include.lake_table import is_between
from include.tables import FORECAST_SCORES
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
    since = (as_of - LOOK_BACK).replace(hour=0, minute=0, second=0, microsecond=0)
    columns, where = ["as_of", *SERIES, "method", "champion", *MEASURES], is_between("as_of", since, as_of)
    recent = lake.few(FORECAST_SCORES).read(columns, since.date(), as_of.date(), where)
    recent = recent.filter(pc.less(recent["as_of"], pa.scalar(as_of, recent["as_of"].type)))
    recent = _select_newest(recent.append_column("date", pc.cast(recent["as_of"], pa.date32())))
    used = recent.filter(pc.fill_null(recent["champion"], False))
    method = used.column_names.index("method")
    renamed = used.set_column(method, "method", pa.array([CHAMPIONS] * len(used), pa.string()))
    both = pa.concat_tables([recent, renamed]).select(["date", "method", *MEASURES])
    lists = [("date", "count"), *((name, "list") for name in MEASURES)]
    rows = [
        (one["date"], one["method"], one["date_count"], *_average_each(one))
        for one in both.group_by(["date", "method"]).aggregate(lists).to_pylist()
    ]
    result = pd.DataFrame(rows, columns=["date", "method", "series", *MEASURES])
    result = result.sort_values(["date", "method"], ignore_index=True)
    return result.astype({"date": "datetime64[ns]", "series": int, **dict.fromkeys(MEASURES, float)})


def _select_newest(scores: pa.Table) -> pa.Table:
    """Return the rows of the newest contest of each series on each date."""
    newest = scores.group_by(["date", *SERIES]).aggregate([("as_of", "max")])
    return (
        scores.join(newest, ["date", *SERIES])
        .filter(pc.field("as_of") == pc.field("as_of_max"))
        .drop_columns("as_of_max")
    )


def _average_each(group: Mapping[str, Sequence[float | None]]) -> Iterator[float]:
    """Yield the mean of each measure, of those that are known; rows come in no order, and any order gives the same."""
    for name in MEASURES:
        known = [one for one in group[f"{name}_list"] if one is not None]
        yield math.fsum(known) / len(known) if known else float("nan")


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
