"""Tables and plots of a training for people."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from include.short_names import shorten_names
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve
from models.capacity.fleet_prior import FleetPrior
from spark_jobs.plot_text import escape_dollars, plot_text
from spark_jobs.train.day_windows import OPERATOR

PANELS = 4  # more are not read; every operator is in the table
CURVES = 4
BUSY, BUSY_SHOWN = 0.8, 1.5  # utilisation at which latencies are ranked; up to which they are drawn
TITLE_MAX = 40  # letters of a line above a panel
_COLUMNS = 2
_BAND_SD = 1.2816  # 80%
_CURVE, _POINTS = "#2563a8", "#d1495b"


def operator_table(bundle: FleetBundle, operators: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per operator: what it was fitted from, how, and its error on held-back rows."""
    merged = operators.merge(scores, how="left", on=list(OPERATOR))
    mean_error = merged["error"] / merged["held"]
    table = merged[[*OPERATOR, "selectivity", "slope_per_s", "length_scale", "noise_share", "idle", "at_bound", "held"]]
    arrays = bundle.arrays
    ends = np.cumsum(arrays["observed_count"])
    spans = list(zip(ends - arrays["observed_count"], ends, strict=True))
    texts = [f"{p}: {per_s:.4g}/s" for p, per_s in zip(arrays["observed"], arrays["observed_per_s"], strict=True)]
    observed = [", ".join(texts[begin:end]) for begin, end in spans]
    return table.assign(held_out_error=mean_error, parallelisms=arrays["observed_count"], capacity_at_observed=observed)


def prior_table(bundle: FleetBundle) -> pd.DataFrame:
    """Return the prior of each kind of operators, one row per kind; no rows when it was learned from no operator."""
    prior = FleetPrior.from_arrays(bundle.arrays)
    return pd.DataFrame({"kind": prior.kinds, **prior.to_columns()} if prior else {"kind": []})


def capacity_figure(bundle: FleetBundle) -> Figure:
    """Draw the curves of the :data:`PANELS` operators observed at the most parallelisms: band of 80%, line, points."""
    order = np.argsort(-bundle.arrays["observed_count"], kind="stable")[:PANELS]
    names = bundle.operators()
    chosen = [names[row] for row in order if bundle.arrays["grid_count"][row]]
    rows = max(1, math.ceil(len(chosen) / _COLUMNS))
    figure = Figure(figsize=(4 * _COLUMNS, 2.8 * rows), layout="constrained")
    axes = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for axis, (cluster, job, operator) in zip(axes, chosen, strict=False):
        _draw_curve(axis, bundle.for_job(cluster, job).capacity[operator])
        short = shorten_names(bundle.for_job(cluster, job).capacity, TITLE_MAX)
        axis.set_title(f"{plot_text(job, TITLE_MAX)}\n{escape_dollars(short[operator])}", fontsize=9)
    for axis in axes[len(chosen) :]:
        axis.set_visible(False)
    figure.supxlabel("parallelism")
    figure.supylabel("capacity, records/s (band: 80%)")
    return figure


def _draw_curve(axis: Axes, curve: CapacityCurve) -> None:
    shown = curve.parallelism <= max(4, 2 * int(curve.observed.max()))
    at, mean, sd = curve.parallelism[shown], curve.mean_per_s[shown], curve.sd_per_s[shown]
    axis.fill_between(at, np.maximum(mean - _BAND_SD * sd, 0), mean + _BAND_SD * sd, color=_CURVE, alpha=0.2, lw=0)
    axis.plot(at, mean, color=_CURVE, lw=1.2)
    axis.plot(curve.observed, curve.observed_per_s, ".", color=_POINTS, ms=5)
    axis.tick_params(labelsize=8)
    axis.set_ylim(bottom=0)


def latency_figure(bundle: FleetBundle, errors: pd.DataFrame) -> Figure:
    """Draw the latency over utilisation of some jobs, and how errors on held-back windows are distributed.

    The jobs are those whose latency is highest at a utilisation of 0.8, where it begins to matter.
    """
    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    models = {job: bundle.for_job(*job).latency for job in bundle.jobs()}
    known = {job: one for job, one in models.items() if len(one.knots)}
    highest = sorted(known, key=lambda job: -float(known[job].latency_ms(np.array([BUSY]))[0]))[:CURVES]
    for job in highest:
        left.plot(known[job].knots, known[job].latency_at_knots_ms, lw=1.4, label=plot_text("/".join(job), TITLE_MAX))
    left.set(xlabel="utilisation of the busiest operator", ylabel="latency, ms", yscale="log", xlim=(0, BUSY_SHOWN))
    if highest:
        left.legend(fontsize=8)
    for column, colour, name in (("error", _CURVE, "challenger"), ("champion_error", _POINTS, "champion")):
        ranked = np.sort(errors[column].dropna().to_numpy(float)) if column in errors else np.zeros(0)
        if len(ranked):
            right.plot(ranked, np.arange(1, len(ranked) + 1) / len(ranked), color=colour, label=name)
            right.legend(fontsize=8)
    right.set(xlabel="relative error of a held-back window", ylabel="share of windows at or below")
    return figure


def recovery_figure(recoveries: pd.DataFrame) -> Figure:
    """Draw predicted against measured recovery with 80% intervals; each event was predicted from those before it.

    On logarithmic axes: most recoveries are short, and the errors are relative.
    """
    figure = Figure(figsize=(5, 5), layout="constrained")
    axis = figure.subplots()
    known = np.isfinite(recoveries[["seen_s", "predicted_s"]].to_numpy(float)).all(axis=1)
    observed = recoveries[known]
    for kind, colour in (("rescale", _CURVE), ("restart", _POINTS)):
        mine = observed[observed["kind"] == kind]
        axis.plot(mine["seen_s"], mine["predicted_s"], "o", color=colour, ms=4, label=f"{kind} ({len(mine)})")
        wide = np.exp(mine["factor_80"] * mine["sd_log"])
        axis.vlines(
            mine["seen_s"], mine["predicted_s"] / wide, mine["predicted_s"] * wide, color=colour, lw=0.6, alpha=0.4
        )
    positive = observed[["seen_s", "predicted_s"]].to_numpy(float)
    positive = positive[positive > 0]
    ends = (0.8 * float(positive.min(initial=1.0)), 1.25 * float(positive.max(initial=10.0)))
    axis.plot(ends, ends, color="grey", lw=0.8)
    axis.set(
        xlabel="measured recovery, s",
        ylabel="predicted recovery, s (line: 80% interval)",
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=ends,
    )
    axis.legend()
    return figure
