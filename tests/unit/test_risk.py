"""One risk, in late minutes: on the plan that is made of the shipped data, in a row and on the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from fleet.facts import JobStatus
from fleet.plans import step_of
from include.settings import Settings
from include.tables.plan_row import PlanRow
from models.scheduling.figures import format_late
from page.risk import LatenessGoal, find_day_late, judge_risk

SHIPPED = Path(__file__).parents[1] / "support" / "shipped_plan.json"
"""Rows that the default policy made of the data that `make run` ships."""
GOAL = LatenessGoal.of(Settings().planner.costs)


def read_rows() -> list[PlanRow]:
    return [PlanRow(**row) for row in json.loads(SHIPPED.read_text(encoding="utf-8"))]


def facts_of(plan: list[PlanRow]) -> JobStatus:
    first = plan[0]
    steps = tuple(map(step_of, plan))
    facts = JobStatus(first.cluster, first.job, "auto", "RUNNING", first.slots_from, None, None, first.status, "", 0.0)
    return replace(facts, steps=steps)


def test_less_than_a_third_of_the_jobs_of_the_shipped_data_is_red() -> None:
    plans = [list(rows) for _, rows in groupby(read_rows(), key=lambda row: (row.cluster, row.job))]
    assert {row.policy for plan in plans for row in plan} == {Settings().planner.policy}
    risks = [judge_risk(facts_of(plan), find_day_late(plan), None, GOAL) for plan in plans]
    assert len(risks) == 18
    assert sum(risk.level == "bad" for risk in risks) < len(risks) / 3
    assert {risk.level for risk in risks} <= {"bad", "ok"}
    for plan in plans:
        assert sum(row.expected_late_minutes or 0.0 for row in plan) <= (plan[0].day_late_minutes or 0.0) * 1.001


def test_no_row_shows_two_figures_for_one_word() -> None:
    for row in read_rows():
        head, _, details = row.reason.partition("; ")
        assert len(head.split()) <= 12, head
        assert row.reason.count("->") == (row.status == "planned"), row.reason
        expected = re.findall(r"([\w ,.]*late minutes?) expected", details)
        assert expected == [format_late(row.expected_late_minutes or 0.0)], row.reason
        assert not re.search(r"risk|P\(late\)|% late", row.reason)


def test_a_plan_that_catches_up_says_so() -> None:
    purposes = [row.reason.partition(";")[0] for row in read_rows() if (row.slots or 0) > (row.slots_from or 0)]
    assert any(" to catch up: prevents " in one for one in purposes)


@pytest.mark.parametrize(("late", "level"), [(None, "unknown"), (14.4, "ok"), (14.5, "bad")])
def test_red_is_what_is_above_the_goal_of_the_settings(late: float | None, level: str) -> None:
    job = facts_of(read_rows()[:1])
    assert judge_risk(job, late, None, GOAL).level == level
    assert GOAL.describe() == "14.4 late minutes a day, in which a record waits for more than 60 s"
    tolerant = Settings.model_validate({"planner": {"costs": {"late_share_goal": 0.05}}})
    assert judge_risk(job, late, None, LatenessGoal.of(tolerant.planner.costs)).level in {"ok", "unknown"}
