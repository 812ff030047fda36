"""Templates, and how values are written in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

import jinja2

from fleet.explanation_text import (
    describe_decision,
    describe_neighbours,
    describe_outcome,
    describe_plan,
    describe_request,
    meaning_of,
    name_decision,
)
from fleet.facts import StepFact
from fleet.health import describe_age
from fleet.savings import PlanSaving, describe_saving
from fleet.shown import describe_hold, show_rate, show_time, split_reason
from include.short_names import shorten_name, shorten_text
from include.utc import DAY_S
from models.control.log_lines import describe_change
from models.scheduling.figures import format_count, format_late
from page.charts import draw_strip
from page.fleet_view import SHOWS, SORTS, JobRow
from page.frontier_chart import FrontierChart
from page.money import Price
from page.sent_copies import form_copies, name_request
from page.shortfall import describe_shortfall, describe_slot_price
from page.shown_names import JOB_NAME_MAX, WHOLE_MAX, mark_text, names_of


def render(template: str, **content: Any) -> str:
    """Return a page as HTML text."""
    return environment().get_template(template).render({"saved": False, "has_advice": False} | content)


@cache
def environment() -> jinja2.Environment:
    """Return what renders every template, with the ways in which values are written."""
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
        short_job=lambda name: shorten_name(name, JOB_NAME_MAX),
        percent=_percent,
        change=describe_change,
        decision=name_decision,
        entry=describe_decision,
        meaning=meaning_of,
        request=describe_request,
        plan=lambda one, now_s: describe_plan(one.plan, one.decision, now_s),
        outcome=describe_outcome,
        hold=describe_hold,
        moment=show_time,
        clock=lambda at_s: f"{datetime.fromtimestamp(at_s, UTC):%H:%M}",
        iso=lambda at_s: f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        link=_link,
        strip=_strip,
        number=show_number,
        signed=show_signed,
        day=lambda at: f"{at:%d %b %Y}",
        saving=_saving,
        text=mark_text,
        whole=lambda name: shorten_text(name, WHOLE_MAX),
        reason=_reason,
        late=lambda minutes: "–" if minutes is None else format_late(minutes),
        count=format_count,
        head=lambda reason: split_reason(reason)[0],
        details=lambda reason: split_reason(reason)[1],
        shortfall=describe_shortfall,
        neighbours=describe_neighbours,
        copies=form_copies,
        put=name_request,
        frontier=FrontierChart,
        meaning_of_price=describe_slot_price,
    )
    result.globals.update(shows=SHOWS, sorts=SORTS, modes=("off", "dry-run", "approve", "auto"))
    return result


def job_link(name: str, at: str = "", **more: str) -> str:
    """Return the address of a job's page, at the time that is looked at."""
    values = {"at": at, **more}
    return f"job?name={quote(name, safe='/')}" + "".join(
        f"&{key}={quote(value)}" for key, value in values.items() if value
    )


def anchor_of(name: str) -> str:
    """Return the identifier of a job's part in the saved page, of letters and digits whatever the job is called."""
    return f"job-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:16]}"


@jinja2.pass_context
def _link(context: jinja2.runtime.Context, name: str, at: str = "", **more: str) -> str:
    """Return where a job is shown: its page, or in the saved page its part."""
    if not context.get("saved"):
        return job_link(name, at, **more)
    return f"#{anchor_of(name)}" if name in context["parts"] else "#jobs"


def _saving(one: PlanSaving, price: Price | None = None) -> str:
    return describe_saving(one, "" if price is None else price.show(abs(one.slot_hours)))


def show_number(value: float | None, digits: int = 0) -> str:
    """Write a number with separated thousands; one that is not known as a dash."""
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "\u2212")


def show_signed(value: float | None, digits: int = 1) -> str:
    """Write a number with its sign."""
    if value is None:
        return "–"
    return "0" if round(value, digits) == 0 else f"{value:+,.{digits}f}".replace("-", "\u2212")


def _reason(line: JobRow) -> tuple[str, Mapping[str, str]]:
    """Return why a job's next step comes, or why it has none, and how operators are called in it."""
    if line.next_step is not None:
        return line.next_step.reason, names_of([line.next_step])
    refused = "refused: " if line.job.plan_status == "refused" else ""
    return refused + (line.job.plan_reason or "no plan yet"), names_of(line.plan)


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{share:.{digits}%}"


def _strip(line: JobRow, now_s: float) -> Any:
    until_s = now_s + DAY_S
    spans = [_span_of(line, step, until_s) for step in line.job.steps if step.slots_to is not None]
    first_s = min((begin for begin, *_ in spans), default=until_s)
    if line.job.slots_now is not None and first_s > now_s:
        spans.insert(0, (now_s, first_s, line.job.slots_now, False))
    return draw_strip(spans, now_s, until_s)


def _span_of(line: JobRow, step: StepFact, until_s: float) -> tuple[float, float, int, bool]:
    begin_s = step.effective_at_s or step.apply_at_s or 0.0
    return begin_s, step.valid_until_s or until_s, step.slots_to or 0, line.goal.level_of(step.late_minutes) == "bad"
