"""The weekly comparison in MLflow: one run with the means per policy, the table and a drawing."""

from __future__ import annotations

import hashlib
from datetime import datetime

import matplotlib as mpl

mpl.use("Agg")

import mlflow
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from include.settings import Settings
from include.utc import format_utc
from include.version import stage_version
from lab.backtest.comparison import REFERENCES
from spark_jobs.model_store import NOTE_TAG, ModelStore
from spark_jobs.plot_text import plot_text

SUFFIX = "-backtest"
MEASURES = ("cost_vs_clairvoyant", "rescales_per_day", "late_minutes_per_day", "slot_hours")
_DRAWN = {
    "cost_vs_clairvoyant": "cost / clairvoyant's cost",
    "rescales_per_day": "rescales per day",
    "late_minutes_per_day": "late minutes per day",
}
_POLICY, _REFERENCE = "#2563a8", "#9ca3af"


def comparison_store(settings: Settings) -> ModelStore:
    """Return the store of the experiment that holds comparisons."""
    named = settings.mlflow.experiment + SUFFIX
    return ModelStore(settings.mlflow.model_copy(update={"experiment": named}))


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each measure over jobs, a row per policy, the cheapest first; failed ones have none."""
    averages: pd.DataFrame = table.astype(dict.fromkeys(MEASURES, float)).groupby("policy")[list(MEASURES)].mean()
    return averages.sort_values("cost_vs_clairvoyant", kind="stable")


def comparison_version(as_of: datetime, table: pd.DataFrame) -> str:
    """Return the name of a comparison: its time, and a hash of its figures."""
    digest = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()
    return f"{format_utc(as_of)}-{digest[:12]}"


def log_comparison(settings: Settings, as_of: datetime, table: pd.DataFrame, model_version: str) -> None:
    """Write one MLflow run; a finished one with the same figures is left as it is.

    Args:
        settings: of the run.
        as_of: the time of the comparison.
        table: the rows of gold.backtests, ordered.
        model_version: of the champion from which the twins were made.
    """
    store, version = comparison_store(settings), comparison_version(as_of, table)
    if store.find_finished(version) is not None:
        return
    averages = means(table)
    chosen = table.loc[table["recommended"].eq(True), "policy"].value_counts()
    tags = {
        NOTE_TAG: describe_comparison(as_of, table, model_version),
        "tidewise.as_of": format_utc(as_of),
        "tidewise.champion": model_version,
        "tidewise.code_version": stage_version("backtest", settings.backtest.policies),
    }
    with store.run(version, tags):
        mlflow.set_tag("mlflow.runName", f"backtest-{format_utc(as_of)}")
        mlflow.log_params(settings.backtest.model_dump())
        mlflow.log_metrics(
            {
                f"{measure}.{policy}": float(value)
                for measure in MEASURES
                for policy, value in averages[measure].items()
                if np.isfinite(value)
            }
        )
        mlflow.log_metrics({f"recommended_jobs.{policy}": float(count) for policy, count in chosen.items()})
        mlflow.log_table(table, "backtests.json")
        mlflow.log_figure(comparison_figure(averages), "comparison.png")


def describe_comparison(as_of: datetime, table: pd.DataFrame, model_version: str) -> str:
    """Return the description of a comparison in Markdown."""
    return f"""What each policy would have cost on the last days of {table["job"].nunique()} jobs before
{format_utc(as_of)}: {table["policy"].nunique()} policies, replayed in simulated replicas of the jobs made from model
`{model_version}`.

Metrics are means over jobs; `cost_vs_clairvoyant` is the cost over that of a planner that knows the load beforehand
(1 is the best there is). `recommended_jobs.<policy>` counts the jobs for which a policy is recommended.

`comparison.png` and `backtests.json` (a row for each job and policy) are under Artifacts.
"""


def comparison_figure(averages: pd.DataFrame) -> Figure:
    """Draw the means of all policies beside each other, the references in grey."""
    shown = averages.dropna(subset=["cost_vs_clairvoyant"]).iloc[::-1]  # the cheapest on top
    figure = Figure(figsize=(12, 1.2 + 0.4 * len(shown)))
    axes = figure.subplots(1, len(_DRAWN), sharey=True)
    colours = [_REFERENCE if name in REFERENCES else _POLICY for name in shown.index]
    for axis, (measure, title) in zip(axes, _DRAWN.items(), strict=True):
        bars = axis.barh([plot_text(name) for name in shown.index], shown[measure], color=colours)
        axis.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        axis.margins(x=0.15)
        axis.set_title(title, fontsize=10, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    figure.subplots_adjust(left=0.17, right=0.98, top=0.88, bottom=0.1, wspace=0.08)
    return figure
