"""Named goals: what a late minute weighs for a fleet, a cluster and a job, and the sizes that come of it."""

from __future__ import annotations

import pytest
from programme_line import noisy, run
from pydantic import ValidationError

from include.settings import Planner
from include.settings.planner import LATE_WEIGHT_FACTOR


def test_the_goal_of_a_job_is_its_own_then_its_cluster_s_then_that_of_all() -> None:
    planner = Planner(goal="cheap", goals={"east": "on_time", "east/orders": "balanced"})
    goals = {job: planner.goal_of(*job.split("/")) for job in ("west/orders", "east/clicks", "east/orders")}
    assert goals == {"west/orders": "cheap", "east/clicks": "on_time", "east/orders": "balanced"}
    weights = {job: planner.for_job(*job.split("/")).costs.late_weight for job in goals}
    assert weights == {"west/orders": 0.1, "east/clicks": 1.6, "east/orders": 0.4}


def test_a_goal_stands_beside_what_the_people_of_a_job_tolerate() -> None:
    planner = Planner(goals={"east": "on_time"}, jobs={"east/orders": {"late_after_s": 300.0}})
    costs = planner.for_job("east", "orders").costs
    assert (costs.late_weight, costs.late_after_s) == (1.6, 300.0)


def test_an_unknown_goal_is_refused() -> None:
    with pytest.raises(ValidationError, match="cheap"):
        Planner(goals={"east": "fast"})


def test_goals_rise_in_slots() -> None:
    slots = []
    for factor in LATE_WEIGHT_FACTOR.values():
        options = Planner().with_values({"costs.late_weight": 0.4 * factor})
        decision, _ = run(noisy(5000.0, sd=0.12), (16, 16, 16), options=options)
        assert decision.wanted is not None
        slots.append(decision.wanted["map"])
    assert slots == sorted(slots)
    assert slots[0] < slots[-1]
