"""The page of the advice: one HTML file without scripts or links to the network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from include.place import place
from include.settings import Settings
from include.short_names import shorten_names
from include.utc import parse_utc
from lab.stages.advise.drawing import calibration_svg, draw_week
from lab.stages.advise.fleet import MONTH_DAYS, map_curves
from models.intervals import LEAST_DAYS, LEVEL
from page.frontier_chart import FrontierChart
from page.rendering import environment
from page.shown_names import JOB_NAME_MAX

TEMPLATE = "page.html.j2"
LABELS = {"take": "saves", "other": "another is cheaper", "keep": "what ran is cheaper", "open": "cannot be told"}


def render(advice: Mapping[str, Any], settings: Settings) -> str:
    """Return the page as HTML text; the same advice gives the same text."""
    source = importlib.resources.files("lab.stages.advise").joinpath(TEMPLATE).read_text(encoding="utf-8")
    chosen = settings.advise
    monthly = chosen.price_per_slot_hour * MONTH_DAYS
    shown = [
        {"job": job, "anchor": f"job-{place}", "week": draw_week(job), "frontier": _chart(job)}
        for place, job in enumerate(advice["jobs"][: chosen.shown])
    ]
    return (
        environment()
        .from_string(source)
        .render(
            advice=advice,
            names=shorten_names((one["job"] for one in (*advice["jobs"], *advice["skipped"])), JOB_NAME_MAX),
            sections=shown,
            frontier=_chart(advice),
            against=[one for one in shown if one["job"]["verdict"]["is_against"]],
            totals={row["name"]: row for row in advice["totals"]},
            own=chosen.policies[0],
            first=parse_utc(advice["first"]),
            end=parse_utc(advice["as_of"]),
            price=chosen.price_per_slot_hour,
            currency=chosen.currency,
            monthly=monthly,
            interval=f"{LEVEL:.0%}",
            seeds=chosen.seeds,
            least_days=LEAST_DAYS,
            labels=LABELS,
            calibration_drawing=Markup(calibration_svg(advice["jobs"])),
            learning_days=settings.backtest.learning_days,
            late_after_s=settings.planner.costs.late_after_s,
            costs=settings.planner.costs,
            has_report=(place(settings.paths.out) / "report.html").is_file(),
            days_of=day_names(parse_utc(advice["first"]), advice["days"]),
        )
    )


def _chart(of: Mapping[str, Any]) -> FrontierChart | None:
    """Return the drawing of the frontier of a job, or of all together; None without one."""
    return FrontierChart(map_curves(of)) if of["curves"] else None


def day_names(first: datetime, days: int) -> Sequence[str]:
    """Return the names of the days of the drawing, each of the day that has most of it."""
    return [f"{first + timedelta(days=place, hours=12):%a}" for place in range(days)]
