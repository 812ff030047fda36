"""The page of the advice: one HTML file without scripts or links to the network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import jinja2
from markupsafe import Markup

from include.place import place
from include.settings import Settings
from include.utc import parse_utc
from lab.stages.advise.drawing import calibration_svg, draw_week
from lab.stages.advise.fleet import MONTH_DAYS, map_curves
from lab.stages.advise.shown_names import mark_name, name_jobs
from models.intervals import LEAST_DAYS, LEVEL
from page.frontier_chart import FrontierChart

TEMPLATE = "page.html.j2"
LABELS = {"take": "saves", "other": "another is cheaper", "keep": "what ran is cheaper", "open": "cannot be told"}
REASONS = {
    "no_model": "nothing learnt before",
    "short_history": "too short a history",
    "no_load": "load not measured",
    "unknown_operator": "graph or capacity not known",
    "failed": "failed",
}


def render(advice: Mapping[str, Any], settings: Settings) -> str:
    """Return the page as HTML text; the same advice gives the same text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=percent, day=day, signed=format_signed, name=mark_name)
    source = importlib.resources.files("lab.stages.advise").joinpath(TEMPLATE).read_text(encoding="utf-8")
    chosen = settings.advise
    monthly = chosen.price_per_slot_hour * MONTH_DAYS
    shown = [
        {"job": job, "anchor": f"job-{place}", "week": draw_week(job), "frontier": _chart(job)}
        for place, job in enumerate(advice["jobs"][: chosen.shown])
    ]
    return environment.from_string(source).render(
        advice=advice,
        names=name_jobs(one["job"] for one in (*advice["jobs"], *advice["skipped"])),
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
        reasons=REASONS,
        calibration_drawing=Markup(calibration_svg(advice["jobs"])),
        learning_days=settings.backtest.learning_days,
        late_after_s=settings.planner.costs.late_after_s,
        costs=settings.planner.costs,
        has_report=(place(settings.paths.out) / "report.html").is_file(),
        days_of=day_names(parse_utc(advice["first"]), advice["days"]),
    )


def _chart(of: Mapping[str, Any]) -> FrontierChart | None:
    """Return the drawing of the frontier of a job, or of all together; None without one."""
    return FrontierChart(map_curves(of)) if of["curves"] else None


def day_names(first: datetime, days: int) -> Sequence[str]:
    """Return the names of the days of the drawing, each of the day that has most of it."""
    return [f"{first + timedelta(days=place, hours=12):%a}" for place in range(days)]


def number(value: float | None, digits: int = 0) -> str:
    """Write a number with separated thousands; one that is not known as a dash."""
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "\u2212")


def format_signed(value: float | None, digits: int = 0) -> str:
    """Write a number with its sign."""
    if value is None:
        return "–"
    return "0" if round(value, digits) == 0 else f"{value:+,.{digits}f}".replace("-", "\u2212")


def percent(value: float | None, digits: int = 0) -> str:
    """Write a share in per cent."""
    return "–" if value is None else f"{100.0 * value:.{digits}f}%".replace("-", "\u2212")


def day(timestamp: datetime) -> str:
    """Write a day."""
    return f"{timestamp:%d %b %Y}"
