"""The report's page: data and drawings into one HTML file without scripts or links to the network."""

from __future__ import annotations

import importlib.resources
from datetime import datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from include.atomic_write import write_text
from spark_jobs.report.figures import curves_svg, schedule_svg
from spark_jobs.report.page_data import Report, Step

TEMPLATE = "page.html.j2"


def render(report: Report) -> str:
    """Return the page as HTML text; the same report gives the same text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(when=when, rate=rate, seconds=seconds, change=change)
    source = importlib.resources.files("spark_jobs.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    drawings = [
        {
            "job": job,
            "schedule": Markup(schedule_svg(job, report.as_of)),
            "curves": Markup(curves_svg(job)) if job.curves else Markup(""),
        }
        for job in report.jobs
    ]
    return environment.from_string(source).render(report=report, sections=drawings)


def write(report: Report, path: Path) -> None:
    """Write the page whole or not at all."""
    write_text(path, render(report))


def when(timestamp: datetime | None) -> str:
    """Write a time for a table cell."""
    return "" if timestamp is None else f"{timestamp:%a %d %b %H:%M}"


def rate(value: float | None) -> str:
    """Write a rate with a unit prefix: 81.3k."""
    if value is None:
        return ""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.1f}{suffix}"
    return f"{value:.0f}"


def seconds(value: float | None) -> str:
    """Write a duration for a table cell; an infinite one in words."""
    if value is None:
        return ""
    if value == float("inf"):
        return "never"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.1f} min"


def change(step: Step) -> str:
    """Write the operators whose parallelism a step changes: ``enrich 6→9, sink 2→3``."""
    changed = (
        f"{operator} {step.parallelism_from.get(operator, '?')}→{target}"
        for operator, target in sorted(step.parallelism_to.items())
        if step.parallelism_from.get(operator) != target
    )
    return ", ".join(changed)
