"""The report's page: data and drawings into one HTML file without scripts or links to the network."""

from __future__ import annotations

import importlib.resources
import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from include.atomic_write import write_text
from include.short_names import shorten_name, shorten_names
from spark_jobs.report.figures import curve_svg, schedule_svg
from spark_jobs.report.page_data import JobReport, Report, Step
from spark_jobs.shown_names import mark_name, mark_text, name_jobs

TEMPLATE = "page.html.j2"
# No script at all and nothing from the network; Matplotlib's drawings carry styles of their own.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
log = logging.getLogger(__name__)


def render(report: Report) -> str:
    """Return the page as HTML text; the same report gives the same text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(when=when, rate=rate, seconds=seconds, change=change, name=mark_name, text=mark_text)
    source = importlib.resources.files("spark_jobs.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    sections = [draw_job(job, report.as_of) for job in report.jobs]
    return environment.from_string(source).render(
        report=report,
        sections=sections,
        policy=CONTENT_SECURITY_POLICY,
        jobs=name_jobs([*(job.job for job in report.jobs), *_cells_of_all(report, "job")]),
        operators=shorten_names(_cells_of_all(report, "operator")),
    )


def draw_job(job: JobReport, as_of: datetime) -> dict[str, object]:
    """Return a job's drawings as SVG; one that cannot be drawn says why, and the page has the others."""
    section: dict[str, object] = {
        "job": job,
        "names": shorten_names(job.operators),
        "schedule": Markup(""),
        "curves": [],
        "failure": "",
    }
    try:
        section["schedule"] = Markup(schedule_svg(job, as_of))
        section["curves"] = [(curve.operator, Markup(curve_svg(curve))) for curve in job.curves]
    except Exception as error:  # one job's data must not keep the others from the page
        log.exception("drawing of %s/%s", job.cluster, shorten_name(job.job))
        section["failure"] = f"{type(error).__name__}: {error}"
    return section


def write(report: Report, path: Path) -> None:
    """Write the page whole or not at all."""
    write_text(path, render(report))


def _cells_of_all(report: Report, column: str) -> list[str]:
    tables = (report.forecasts, report.certificates, report.events)
    return [cell for table in tables for cell in _cells_of(table, column)]


def _cells_of(table: tuple[Sequence[str], Sequence[Sequence[str]]], column: str) -> list[str]:
    """Return the cells of a column; none where the table has no such column."""
    header, rows = table
    return [row[list(header).index(column)] for row in rows] if column in header else []


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
