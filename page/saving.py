"""The page saved as one file: the fleet, what came of it, data, and a part for each job; no scripts, no network."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

from fleet.fleet_reader import FleetReader
from include.atomic_write import write_text
from include.settings import Settings
from include.short_names import shorten_name
from page.curves import Curve
from page.data_view import read_data
from page.fleet_view import JobRow, Query, form_view
from page.job_view import USUAL_H, read_view
from page.rendering import anchor_of, render
from page.results_view import ResultsReader
from page.source import LakeSnapshot, look_at

PARTS = 40
"""So many jobs have a part of their own: those most at risk."""
ROWS = 1_000
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SavedPage:
    """What was saved: jobs of the fleet, and those with a part of their own."""

    jobs: int
    shown: int


def save_page(
    settings: Settings,
    variables: Mapping[str, str],
    at_s: float,
    path: Path,
    *,
    read_curves: Callable[[str, str], Sequence[Curve]],
    code_version: str,
) -> SavedPage:
    """Write the page as it is known at a time. ``read_curves`` returns the learnt capacities of a job's operators."""
    reader = FleetReader(settings, variables)
    look = look_at(reader, None, at_s)
    view = form_view(look, Query(), rows=ROWS)
    shown = view.lines[:PARTS]
    common = {
        "saved": True,
        "parts": {line.name for line in shown},
        "acts": False,
        "now_s": look.facts.at_s,
        "has_advice": (path.parent / "advice.html").is_file(),
    }
    parts = [_render_job(reader, look, line, read_curves, common) for line in shown]
    text = render(
        "saved.html.j2",
        view=view,
        look=look,
        query=Query(),
        data_end_s=None,
        parts_html=Markup("\n").join(parts),
        results=ResultsReader(reader).read(look.facts.at_s),
        data=read_data(reader, look.facts.at_s),
        policy=content_security_policy(),
        style=Markup(style_sheet()),
        code_version=code_version,
        **common,
    )
    write_text(path, text)
    return SavedPage(view.jobs, len(shown))


def style_sheet() -> str:
    """Return the page's style sheet."""
    return importlib.resources.files("page").joinpath("static", "page.css").read_text(encoding="utf-8")


@cache
def content_security_policy() -> str:
    """Return the policy of the saved file: its own style sheet, named by its hash, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style_sheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _render_job(
    reader: FleetReader,
    look: LakeSnapshot,
    line: JobRow,
    read_curves: Callable[[str, str], Sequence[Curve]],
    common: Mapping[str, object],
) -> Markup:
    job, failure, html = line.job, "", ""
    try:
        view = read_view(
            *(reader, look, job.cluster, job.job), hours=USUAL_H, why_at=None, curves=read_curves(job.cluster, job.job)
        )
        html = render(
            "job_content.html.j2",
            view=view,
            name=line.name,
            hours=USUAL_H,
            origin=look.origin,
            at="",
            why="",
            done="",
            problem="",
            **common,
        )
    except Exception as error:  # one job's rows must not keep the others from the page
        log.exception("page of %s/%s: not drawn", job.cluster, shorten_name(job.job))
        failure = f"{type(error).__name__}: {error}"
    return Markup(
        render("saved_part.html.j2", anchor=anchor_of(line.name), name=job.job, failure=failure, html=Markup(html))
    )
