"""A challenger beside the champion on one page, for whoever reviews it: rows of text in, HTML out."""

from __future__ import annotations

import importlib.resources
import math
from collections.abc import Mapping
from typing import Any

import jinja2

COMPARISON_PAGE, COMPARISON_ROWS = "comparison.html", "comparison.json"
"""Files of a training's run in MLflow: the page, and what it is rendered from."""
TEMPLATE = "comparison.html.j2"


def render_comparison(
    rows: Mapping[str, Any], plans: str = "", costs: Mapping[tuple[str, str], float] | None = None
) -> str:
    """Return the page of rows of ``list_comparison`` as HTML text; it loads nothing.

    ``plans`` says in a sentence what plans by the challenger would have cost, ``costs`` by (cluster, job) by which
    share they cost more (negative: less); NaN where that is not known.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    source = importlib.resources.files("spark_jobs").joinpath(TEMPLATE).read_text(encoding="utf-8")
    known = {} if costs is None else costs
    jobs = [job | {"cost": _signed(known.get((job["cluster"], job["job"]), math.nan))} for job in rows["jobs"]]
    return environment.from_string(source).render({**rows, "jobs": jobs, "plans": plans})


def _signed(share: float) -> str:
    """Return a difference in percent; nothing where it is not known."""
    return f"{share:+.1%}" if math.isfinite(share) else ""
