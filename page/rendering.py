"""Templates, and how values are written in them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

import jinja2

from fleet.explanation_text import (
    describe_outcome,
    describe_plan,
    describe_request,
    meaning_of,
    name_decision,
)
from fleet.facts import StepFact
from fleet.health import describe_age
from fleet.shown import describe_hold, show_rate, show_time
from include.short_names import shorten_name
from include.utc import DAY_S
from models.control.log_lines import describe_change
from page.charts import draw_strip
from page.fleet_view import SHOWS, SORTS, JobLine
from page.risk import WARN


def render(template: str, **content: Any) -> str:
    """Return a page as HTML text."""
    return _environment().get_template(template).render(**content)


@cache
def _environment() -> jinja2.Environment:
    result = jinja2.Environment(
        loader=jinja2.PackageLoader("page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters.update(
        rate=show_rate,
        age=describe_age,
        short=shorten_name,
        percent=_percent,
        change=describe_change,
        decision=name_decision,
        meaning=meaning_of,
        request=describe_request,
        plan=lambda one, now_s: describe_plan(one.plan, one.decision, now_s),
        outcome=describe_outcome,
        hold=describe_hold,
        moment=show_time,
        clock=lambda at_s: f"{datetime.fromtimestamp(at_s, UTC):%H:%M}",
        iso=lambda at_s: f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        link=job_link,
        strip=_strip,
    )
    result.globals.update(shows=SHOWS, sorts=SORTS, modes=("off", "dry-run", "approve", "auto"))
    return result


def job_link(name: str, at: str = "", **more: str) -> str:
    """Return the address of a job's page, at the time that is looked at."""
    values = {"at": at, **more}
    return f"job?name={quote(name, safe='/')}" + "".join(
        f"&{key}={quote(value)}" for key, value in values.items() if value
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _strip(line: JobLine, now_s: float) -> Any:
    until_s = now_s + DAY_S
    spans = [_span_of(step, until_s) for step in line.job.steps if step.slots_to is not None]
    first_s = min((begin for begin, *_ in spans), default=until_s)
    if line.job.slots_now is not None and first_s > now_s:
        spans.insert(0, (now_s, first_s, line.job.slots_now, False))
    return draw_strip(spans, now_s, until_s)


def _span_of(step: StepFact, until_s: float) -> tuple[float, float, int, bool]:
    begin_s = step.effective_at_s or step.apply_at_s or 0.0
    return begin_s, step.valid_until_s or until_s, step.slots_to or 0, (step.p_late or 0.0) >= WARN
