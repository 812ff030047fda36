"""What an objective costs before it is switched on: priced by the programme with it and without."""

from __future__ import annotations

import numpy as np
import pytest

from include.settings import Advise, Backtest, Settings, SettingsError, check_settings
from include.settings.planner import JobGoals
from lab.advice.appraisal import replay
from lab.advice.objective import WITH, WITHOUT, build_drivers, compare_objective, describe_goals
from tests.unit.test_advice import START_S, history, subject

GOALS = JobGoals(recovery_within_s=240.0, recovery_probability=0.9)


def test_an_objective_is_said_in_a_user_s_words() -> None:
    goals = JobGoals(late_after_s=300.0, recovery_within_s=300.0)
    assert describe_goals(goals, 0.95) == (
        "late only after 300 s and caught up within 5 min in 95% after a lost TaskManager"
    )
    assert describe_goals(GOALS, 0.95).startswith("caught up within 4 min in 90%")


def test_the_two_differ_by_the_objective_alone() -> None:
    drivers = build_drivers(GOALS, {})
    assert drivers[WITH].changed == {"costs.recovery_within_s": 240.0, "costs.recovery_probability": 0.9}
    assert drivers[WITHOUT].changed == {}
    assert drivers[WITH].policy == drivers[WITHOUT].policy or type(drivers[WITH].policy) is type(
        drivers[WITHOUT].policy
    )


def test_what_it_takes_more_is_of_a_day_and_of_a_month() -> None:
    def day(slots: float, late: float) -> dict[str, np.ndarray]:
        arrays = {"slot_hours": slots, "late_minutes": late, "rescales": 1.0}
        return {name: np.full((4, 2), value) for name, value in arrays.items()}

    made = compare_objective("x", day(250.0, 2.0), day(240.0, 5.0), price_per_slot_hour=0.05)
    assert (made.slot_hours.mean, made.late_minutes.mean, made.rescales.mean) == (10.0, -3.0, 0.0)
    assert made.money_per_month.mean == pytest.approx(10 * 30 * 0.05)


def test_an_objective_without_anything_to_price_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r'advise\.objectives\."c/orders" has neither'):
        check_settings({"advise": {"objectives": {"c/orders": {"recovery_probability": 0.9}}}})
    with pytest.raises(SettingsError, match="prd"):
        check_settings({"clusters": {"prod": {}}, "advise": {"objectives": {"prd/x": {"late_after_s": 90.0}}}})


@pytest.mark.long
def test_a_recovery_in_time_costs_slots_on_a_job_s_own_days() -> None:
    settings = Settings(
        backtest=Backtest(learning_days=0.5, history_days_min=1.0),
        advise=Advise(days=2, seeds=1, policies=("controller_alone",), objectives={"c/orders": GOALS}),
    )
    result = replay(subject(), history(failures=(START_S + 2.75 * 86_400,)), settings)
    assert result.objective is not None
    assert result.objective.slot_hours.mean > 5.0
    assert result.objective.money_per_month.mean == pytest.approx(result.objective.slot_hours.mean * 30 * 0.05)
    assert [one.name for one in result.options] == ["ran", "controller_alone", "constant"]
