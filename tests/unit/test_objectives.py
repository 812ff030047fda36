"""What an objective costs before it is switched on: priced by the programme with it and without."""

from __future__ import annotations

import pytest

from include.settings import Advise, Backtest, Settings, SettingsError, check_settings
from include.settings.planner import JobGoals
from lab.advice.appraisal import replay
from lab.advice.objective import build_with, describe_goals
from lab.stages.advise.job_advice import describe_objective
from tests.unit.test_advice import START_S, history, subject

GOALS = JobGoals(recovery_within_s=240.0, recovery_probability=0.9)


def test_an_objective_is_said_in_a_user_s_words() -> None:
    goals = JobGoals(late_after_s=300.0, recovery_within_s=300.0)
    assert describe_goals(goals, 0.95) == (
        "late only after 300 s and caught up within 5 min in 95% after a lost TaskManager"
    )
    assert describe_goals(GOALS, 0.95).startswith("caught up within 4 min in 90%")


def test_the_programme_has_the_objective_in_the_place_of_its_own_goals() -> None:
    assert build_with(GOALS, None).changed == {"costs.recovery_within_s": 240.0, "costs.recovery_probability": 0.9}


def test_an_objective_without_anything_to_price_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r'advise\.objectives\."c/orders" has neither'):
        check_settings({"advise": {"objectives": {"c/orders": {"recovery_probability": 0.9}}}})
    with pytest.raises(SettingsError, match="prd"):
        check_settings({"clusters": {"prod": {}}, "advise": {"objectives": {"prd/x": {"late_after_s": 90.0}}}})


@pytest.mark.long
def test_a_recovery_in_time_costs_slots_on_a_job_s_own_days() -> None:
    settings = Settings(
        backtest=Backtest(learning_days=0.5, history_days_min=1.0),
        advise=Advise(days=2, seeds=1, policies=("flink_autoscaler_tuned",), objectives={"c/orders": GOALS}),
    )
    result = replay(subject(), history(failures=(START_S + 2.75 * 86_400,)), settings)
    made = describe_objective(settings, subject(), result)
    assert made is not None
    assert made["text"].startswith("caught up within 4 min")
    assert made["slot_hours"]["mean"] > 5.0
    assert [one.name for one in result.options] == ["ran", "flink_autoscaler_tuned", "constant"]
