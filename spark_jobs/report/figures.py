"""The report's drawings, as SVG text to stand inside the page."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import matplotlib as mpl
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from include.short_names import shorten_name
from spark_jobs.report.page_data import Curve, Fan, JobReport, Step

LOAD, FORECAST, CAPACITY, SLOTS, NOW = "#1f4e79", "#2a8fbd", "#c05621", "#2f7d4f", "#6b7280"
LEFT_IN, RIGHT_IN = 0.62, 0.12  # margins of every drawing, inches
APPLIED = {"confirmed": SLOTS, "dry_run": "white", "failed": "#b91c1c", "rolled_back": CAPACITY}

mpl.rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: the page's font, selectable
        "svg.hashsalt": "tidewise",  # the same data gives the same bytes
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e5e7eb",
        "axes.edgecolor": "#9ca3af",
        "legend.frameon": False,
    }
)


def _svg(figure: Figure, title: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _set_margins(figure: Figure, *, bottom_in: float, top_in: float, between: float) -> None:
    """Set margins by hand: to find them, matplotlib would draw every figure several times."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=LEFT_IN / width,
        right=1.0 - RIGHT_IN / width,
        bottom=bottom_in / height,
        top=1.0 - top_in / height,
        hspace=between,
        wspace=0.28,
    )


def schedule_svg(job: JobReport, as_of: datetime) -> str:
    """Draw load, forecast fan and planned capacity above; slots that ran and slots planned below."""
    figure = Figure(figsize=(11, 4.6))
    _set_margins(figure, bottom_in=0.5, top_in=0.3, between=0.26)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    _draw_load(top, job)
    _draw_capacity(top, job, as_of)
    _draw_slots(bottom, job, as_of)
    for axes in (top, bottom):
        axes.margins(x=0.01)
        axes.axvline(float(date2num(as_of)), color=NOW, linewidth=1, linestyle="--")
    top.set_title("dashed: the plan's making", loc="right", fontsize=8, color=NOW)
    _format_times(bottom)
    return _svg(figure, f"Load, forecast and planned slots of {shorten_name(job.job)}")


def _draw_load(axes: Axes, job: JobReport) -> None:
    axes.plot(date2num(job.load.times), job.load.rate_per_s, color=LOAD, linewidth=1, label="load that came")
    if job.past_fan is not None and job.past_fan.times:
        past = _break_at_gaps(job.past_fan)
        axes.fill_between(
            date2num(past.times),
            past.q10_per_s,
            past.q90_per_s,
            color=FORECAST,
            alpha=0.4,
            linewidth=0,
            label="as forecast an hour before",
        )
    if job.fan.times:
        axes.fill_between(
            date2num(job.fan.times),
            job.fan.q10_per_s,
            job.fan.q90_per_s,
            color=FORECAST,
            alpha=0.25,
            linewidth=0,
            label="forecast q10-q90",
        )
        axes.plot(date2num(job.fan.times), job.fan.q50_per_s, color=FORECAST, linewidth=1.2, label="forecast q50")
    axes.set_ylabel("records per s")
    axes.yaxis.set_major_formatter(EngFormatter())


def _break_at_gaps(fan: Fan) -> Fan:
    """Put a gap where bins are missing, so that no band is drawn over hours without a forecast."""
    steps = [after - before for before, after in pairwise(fan.times)]
    usual = min(steps, default=timedelta())
    rows = list(zip(fan.times, fan.q10_per_s, fan.q50_per_s, fan.q90_per_s, strict=True))
    whole = list(rows)
    for place in range(len(steps) - 1, -1, -1):
        if steps[place] > 2 * usual:
            whole.insert(place + 1, (fan.times[place] + usual, math.nan, math.nan, math.nan))
    times, low, middle, high = zip(*whole, strict=True) if whole else ((), (), (), ())
    return Fan(times, low, middle, high, fan.methods, fan.fallback_reasons)


def _draw_capacity(axes: Axes, job: JobReport, as_of: datetime) -> None:
    spans = [
        step
        for step in job.planned
        if step.expected_capacity_lower_per_s is not None and step.effective_at and step.valid_until
    ]
    for number, step in enumerate(spans):
        times = date2num([max(_utc(step.effective_at), as_of), _utc(step.valid_until)])
        label = "planned capacity, lower bound" if number == 0 else None
        axes.plot(times, [step.expected_capacity_lower_per_s or 0.0] * 2, color=CAPACITY, linewidth=2, label=label)
    axes.set_ylim(bottom=0)
    _legend_above(axes)


def _draw_slots(axes: Axes, job: JobReport, as_of: datetime) -> None:
    axes.step(
        date2num(job.load.times), job.load.slots, where="post", color=SLOTS, linewidth=1.2, label="slots that ran"
    )
    times, slots = planned_slots(job.planned, job.slots_now, as_of)
    if times:
        axes.step(date2num(times), slots, where="post", color=SLOTS, linewidth=2.2, alpha=0.55, label="slots planned")
        axes.fill_between(date2num(times), slots, step="post", color=SLOTS, alpha=0.12, linewidth=0)
    _draw_applied(axes, job)
    axes.set_ylabel("slots")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    _legend_above(axes)


def _draw_applied(axes: Axes, job: JobReport) -> None:
    """Mark the steps of earlier plans that were applied, failed, or would have been applied."""
    for status, colour in APPLIED.items():
        mine = [one for one in job.outcomes if one.status.split(":")[0] == status]
        if mine:
            times, slots = date2num([one.apply_at for one in mine]), [one.slots for one in mine]
            label = f"steps: {status.replace('_', ' ')}"
            axes.plot(times, slots, "o", color=colour, markeredgecolor=SLOTS, markersize=4.5, label=label)


def _legend_above(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.0, 0.99), borderaxespad=0.0, ncols=5, fontsize=8)


def planned_slots(steps: list[Step], slots_now: int, as_of: datetime) -> tuple[list[datetime], list[int]]:
    """Return the corners of the planned slots over time, from the plan's making to the end of its last step."""
    if not steps:
        return [], []
    times, slots = [as_of], [slots_now]
    for step in steps:
        times.append(max(_utc(step.apply_at), as_of))
        slots.append(step.slots or 0)
    times.append(_utc(steps[-1].valid_until))
    slots.append(steps[-1].slots or 0)
    return times, slots


def curve_svg(curve: Curve) -> str:
    """Draw an operator's capacity curve with its 80% band and the observations it was learnt from."""
    figure = Figure(figsize=(2.8, 1.9))
    _set_margins(figure, bottom_in=0.45, top_in=0.08, between=0.0)
    _draw_curve(figure.subplots(), curve)
    return _svg(figure, f"Capacity curve of {shorten_name(curve.operator)}")


def _draw_curve(axes: Axes, curve: Curve) -> None:
    band = [1.28 * sd for sd in curve.sd_per_s]
    lower = [max(mean - width, 0.0) for mean, width in zip(curve.mean_per_s, band, strict=True)]
    upper = [mean + width for mean, width in zip(curve.mean_per_s, band, strict=True)]
    axes.fill_between(curve.parallelism, lower, upper, color=CAPACITY, alpha=0.2, linewidth=0)
    axes.plot(curve.parallelism, curve.mean_per_s, color=CAPACITY, linewidth=1.2)
    axes.plot(curve.observed, curve.observed_per_s, "o", color=LOAD, markersize=3)
    axes.set_xlabel("parallelism")
    axes.yaxis.set_major_formatter(EngFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))


def _format_times(axes: Axes) -> None:
    axes.xaxis_date(UTC)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator(), tz=UTC))


def _utc(timestamp: datetime | None) -> datetime:
    if timestamp is None:
        raise ValueError("a planned step has no time")
    return timestamp


def visible_curve(curve: Curve, reach: float) -> Curve:
    """Cut a curve at ``reach`` times its highest observed parallelism, so that the learnt part fills the drawing."""
    limit = max([*curve.observed, 2.0]) * reach
    keep = [index for index, p in enumerate(curve.parallelism) if p <= limit]
    return Curve(
        curve.operator,
        [curve.parallelism[index] for index in keep],
        [curve.mean_per_s[index] for index in keep],
        [curve.sd_per_s[index] for index in keep],
        curve.observed,
        curve.observed_per_s,
    )
