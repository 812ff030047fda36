"""The report's page: data and drawings into one HTML file without scripts or links to the network."""

from __future__ import annotations

import importlib.resources
import logging
from datetime import datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from include.atomic_write import write_text
from spark_jobs.plot_text import shorten_name
from spark_jobs.report.figures import curves_svg, schedule_svg
from spark_jobs.report.page_data import JobReport, Report, Step

TEMPLATE = "page.html.j2"
# No script at all and nothing from the network; Matplotlib's drawings carry styles of their own.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
CELL_MAX = 1000  # letters of a text in a cell
log = logging.getLogger(__name__)


def render(report: Report) -> str:
    """Return the page as HTML text; the same report gives the same text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(when=when, rate=rate, seconds=seconds, change=change, name=shorten_name, cell=cell)
    source = importlib.resources.files("spark_jobs.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    sections = [draw_job(job, report.as_of) for job in report.jobs]
    return environment.from_string(source).render(report=report, sections=sections, policy=CONTENT_SECURITY_POLICY)


def draw_job(job: JobReport, as_of: datetime) -> dict[str, object]:
    """Return a job's drawings as SVG; one that cannot be drawn says why, and the page has the others."""
    section: dict[str, object] = {"job": job, "schedule": Markup(""), "curves": Markup(""), "failure": ""}
    try:
        section["schedule"] = Markup(schedule_svg(job, as_of))
        section["curves"] = Markup(curves_svg(job)) if job.curves else Markup("")
    except Exception as error:  # one job's data must not keep the others from the page
        log.exception("drawing of %s/%s", job.cluster, shorten_name(job.job))
        section["failure"] = f"{type(error).__name__}: {error}"
    return section


def write(report: Report, path: Path) -> None:
    """Write the page whole or not at all."""
    write_text(path, render(report))


def cell(text: object) -> str:
    """Return the text of a table cell: one line of bounded length; nothing for an empty text."""
    return shorten_name(str(text), CELL_MAX) if str(text).strip() else ""


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
