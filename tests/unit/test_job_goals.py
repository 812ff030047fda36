"""What the people of a job ask for: its lateness, and its recovery within a time; refused where no policy meets it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.settings import Planner, Settings, SettingsError, check_settings
from models.policies.tidewise.programme_choice import list_terms
from models.programme.horizon import STEPS, spread_levels
from models.programme.problem import RecoveryGoal
from models.programme.programme import solve_programme
from tests.unit.test_programme_policy import noisy, snapshot, window
from tests.unit.test_trajectory import SHAPE, TERMS, outlook, sizes

KEY = "prod/orders"


def refuse(planner: dict[str, object]) -> str:
    with pytest.raises(SettingsError) as error:
        check_settings({"clusters": {"prod": {}}, "planner": planner})
    return str(error.value)


def test_a_job_s_goals_stand_in_the_place_of_those_of_all() -> None:
    planner = Planner.model_validate({"jobs": {KEY: {"late_after_s": 300.0, "recovery_within_s": 600.0}}})
    own, other = planner.for_job("prod", "orders"), planner.for_job("prod", "clicks")
    assert (own.costs.late_after_s, own.costs.recovery_within_s, own.costs.recovery_probability) == (300.0, 600.0, 0.95)
    assert other is planner
    job = snapshot([window(at, load, (6, 6, 6)) for at, load in enumerate(noisy(5000.0, 24))], (6, 6, 6))
    terms = list_terms(replace(job, options=own), 6000.0)
    assert (terms.late_after_s, terms.recovery) == (300.0, RecoveryGoal(600.0, 0.95))


@pytest.mark.parametrize(
    ("planner", "names"),
    [
        ({"policies": {KEY: "ds2"}, "jobs": {KEY: {"late_after_s": 90.0}}}, "late_after_s: policy ds2"),
        ({"policies": {KEY: "planner"}, "jobs": {KEY: {"late_after_s": 90.0}}}, "late_after_s: policy planner"),
        (
            {"policies": {KEY: "planner"}, "jobs": {KEY: {"recovery_within_s": 90.0}}},
            "recovery_within_s: policy planner",
        ),
        ({"policy": "programme", "jobs": {KEY: {"recovery_probability": 0.9}}}, "recovery_probability has no time"),
        ({"policy": "planner", "costs": {"recovery_within_s": 90.0}}, 'planner.policy = "planner"'),
        (
            {"policy": "programme", "policies": {KEY: "ds2"}, "costs": {"recovery_within_s": 90.0}},
            f'planner.policies."{KEY}" = "ds2"',
        ),
        ({"jobs": {KEY: {"recovery_probability": 1.5, "recovery_within_s": 60.0}}}, "recovery_probability"),
        ({"jobs": {"prd/orders": {"late_after_s": 90.0}}}, "prd"),
    ],
)
def test_a_goal_that_nothing_meets_is_refused_by_name(planner: dict[str, object], names: str) -> None:
    assert names in refuse(planner)


def test_a_lateness_is_a_goal_of_the_programme() -> None:
    check_settings({"planner": {"policies": {KEY: "programme"}, "jobs": {KEY: {"late_after_s": 90.0}}}})
    assert Settings().planner.find_unmet_goal() is None


def choose(goal: RecoveryGoal | None, load: float = 7400.0) -> float:
    rows, seen = sizes(8.0, STEPS), outlook(np.full(288, load))
    values = solve_programme(rows, spread_levels(seen), SHAPE, 0.0, replace(TERMS, recovery=goal)).values
    best = 1 + int(values.go[1:].argmin())
    return float(rows.slots[best] if values.go[best] < values.stay else 8.0)


def test_a_recovery_in_time_needs_the_headroom_for_it() -> None:
    assert choose(None) == 8.0
    assert choose(RecoveryGoal(3600.0, 0.6)) == 8.0  # (60 + 30) / 3540: 3% are enough
    # 90 s of records in the 240 s that are left after the stop need 1.375 x 7400 = 10,175/s, of 12 slots alone.
    assert choose(RecoveryGoal(300.0, 0.6)) == 12.0


def test_a_goal_that_no_size_meets_changes_nothing() -> None:
    assert choose(RecoveryGoal(30.0, 0.95)) == choose(None)  # the stop alone takes a minute
    assert choose(RecoveryGoal(65.0, 0.95)) == choose(None)
