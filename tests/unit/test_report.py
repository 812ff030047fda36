"""The report's page: complete, self-contained, the same for the same data."""

from __future__ import annotations

import html
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import timedelta

import pytest
from synthetic_report import AS_OF, job, report, step

from models.control.log_lines import LogLine
from spark_jobs.report.figures import _break_at_gaps, planned_slots, visible_curve
from spark_jobs.report.page import change, rate, render, seconds
from spark_jobs.report.page_data import Curve, Fan, JobReport, LoadSeries, Outcome, PolicyCost, Realised


def test_page_shows_the_plan_and_escapes_names() -> None:
    page = render(report(job([step()])))
    for text in (
        "Fri 20 Nov 20:00",
        "enrich &lt;b&gt; 6→9",
        "81.3k",
        "2.1%",
        "4.0 min",
        "load rises &amp; enrich needs 9",
    ):
        assert text in page
    assert "<b>:" not in page
    assert "Shown are the 1 jobs" in page
    assert "only 2 days of history" in page


def test_page_needs_no_network_and_its_drawings_are_valid_xml() -> None:
    page = render(report(job([step()])))
    links = re.findall(r'(?:src|href)="(?!#)([^"]+)"', page)
    assert [link for link in links if not link.startswith("data:")] == []
    assert "<script" not in page
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        ET.fromstring(drawing)


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render(report(job([step()]))) == render(report(job([step()])))


def test_jobs_without_steps_load_or_forecast_are_shown() -> None:
    nothing = JobReport("live", "idle", LoadSeries([], [], []), Fan([], [], [], [], [], []), [], [])
    times = dict.fromkeys(("apply_at_s", "effective_at_s", "valid_until_s"))
    refused = job([step("refused", refusal="no_model", **times)], curves=[])
    page = render(report(nothing, refused))
    assert "no_model" in page
    assert "idle" in page


def test_planned_slots_follow_the_steps() -> None:
    at_s = AS_OF.timestamp()
    later = step(apply_at_s=at_s + 6 * 3600, slots_from=9, slots=4, valid_until_s=at_s + 24 * 3600)
    times, slots = planned_slots([step(), later], 6, AS_OF)
    assert slots == [6, 9, 4, 4]
    assert times == [AS_OF, AS_OF + timedelta(hours=2), AS_OF + timedelta(hours=6), AS_OF + timedelta(hours=24)]
    assert planned_slots([], 6, AS_OF) == ([], [])


def test_a_curve_is_cut_where_nothing_was_learnt() -> None:
    curve = Curve("map", list(range(1, 129)), [float(p) for p in range(1, 129)], [1.0] * 128, [2, 10], [2.0, 10.0])
    assert visible_curve(curve, 1.6).parallelism[-1] == 16


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (812.4, "812"), (81_300.0, "81.3k"), (5e6, "5.0M"), (2e9, "2.0G")]
)
def test_rates_have_unit_prefixes(value: float | None, text: str) -> None:
    assert rate(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, ""), (95.0, "95 s"), (241.0, "4.0 min"), (float("inf"), "never")])
def test_durations_are_short(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_a_change_names_only_operators_that_change() -> None:
    assert change(step()) == "enrich <b> 6→9"


@pytest.mark.parametrize(
    "name", ["Foo$$Lambda$14/0x00$x", "$", r"$\frac{$", '"><script>alert(1)</script>', "<b>&", "😀 ü"]
)
def test_a_name_of_any_kind_is_shown_as_it_is(name: str) -> None:
    curve = Curve(name, [1, 2], [10e3, 19e3], [1e3] * 2, [1], [10e3])
    page = render(report(replace(job([step()], [curve]), job=name, cluster=name)))
    assert "<script" not in page
    assert f"<h2>{html.escape(name).replace('&quot;', '&#34;')}</h2>" in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(drawing)


def policy(name: str, cost: float | None, **changes: object) -> PolicyCost:
    values: dict[str, object] = {
        "policy": name,
        "cost_vs_clairvoyant": cost,
        "rescales_per_day": 4.25,
        "late_minutes_per_day": 1.5,
        "slot_hours": 812.0,
        "days": 7.0,
        "recommended": False,
        "in_use": False,
        "note": "",
        "error": "",
    }
    return PolicyCost(**{**values, **changes})  # type: ignore[arg-type]


def outcome(status: str) -> Outcome:
    due = AS_OF - timedelta(hours=5)
    return Outcome(due, status, 9, 8.5, 81_300.0, 79_000.0, 0.021, 2.5, 241.0, 130.0, 300.0)


def test_page_shows_what_came_beside_what_was_expected() -> None:
    realised = Realised(3.0, 12.5, 310.0, 6.0, 1.0, 95.0)
    page = render(
        report(replace(job([step()]), outcomes=[outcome("confirmed"), outcome("dry_run")], realised=realised))
    )
    for text in ("12.5 late minutes", "310 slot-hours", "caught up within 95 s", "dry run", "8.5", "79.0k", "2.2 min"):
        assert text in page
    assert "steps: confirmed" in page  # in the drawing
    assert "No step of an earlier plan" in render(report(job([step()])))


def log_line(**changes: object) -> LogLine:
    values: dict[str, object] = {
        "at": AS_OF - timedelta(hours=1),
        "observed": "6 slots",
        "desired": "9 slots (enrich <b> 6->9)",
        "decision": "rescale: plan",
        "why": "load rises & enrich needs 9",
        "came_of": "sent, accepted",
        "step_id": "step-1",
        "is_dry_run": False,
    }
    return LogLine(**{**values, **changes})  # type: ignore[arg-type]


def test_page_shows_what_the_controller_did_and_escapes_it() -> None:
    lines = [
        log_line(decision="refuse: on_hold", came_of="", why="<script>alert(1)</script>"),
        log_line(is_dry_run=True, came_of="dry run: nothing was sent"),
        log_line(),
    ]
    page = render(report(replace(job([step()]), job="<script>", log=lines)))
    for text in ("Fri 20 Nov 17:00", "enrich &lt;b&gt; 6-&gt;9", "sent, accepted", "rescale: plan (dry run)"):
        assert text in page
    assert '<td class="refused">refuse: on_hold</td>' in page
    assert 'make log ARGS="live/&lt;script&gt;"</code>' in page
    assert "<script" not in page
    assert "Control log of the last day" not in render(report(job([step()])))


def test_page_shows_costs_under_other_policies_and_the_recommended_one() -> None:
    rows = [
        policy("clairvoyant", 1.0),
        policy("planner", 1.03, recommended=True),
        policy("ds2", 1.3, in_use=True),
        policy("phoebe", None, error="KeyError('x')"),
    ]
    page = render(report(replace(job([step()]), policies=rows)))
    assert "cheapest last week" in page
    assert re.search(r'<tr class="best"><td class="t">planner</td>\s*<td class="n">1.03</td>', page)
    assert 'style="width: 100.0%"' in page
    assert "failed: KeyError" in page
    assert "cheapest last week" not in render(report(job([step()])))


def test_a_past_forecast_with_a_gap_is_drawn_in_parts() -> None:
    past = [AS_OF - timedelta(minutes=5 * back) for back in (30, 29, 28, 10, 9, 8)]
    fan = Fan(past, [1.0] * 6, [2.0] * 6, [3.0] * 6, [], [])
    broken = _break_at_gaps(fan)
    assert len(broken.times) == 7
    assert broken.times[3] == past[2] + timedelta(minutes=5)
    assert math.isnan(broken.q50_per_s[3])
    assert "as forecast an hour before" in render(report(replace(job([step()]), past_fan=fan)))
