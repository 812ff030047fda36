"""Constants of the laboratory's planner: those that settings of an earlier release may still say."""

from __future__ import annotations

from functools import reduce

import pytest

from include.settings import Costs, Planner, Settings, SettingsError, check_settings
from include.settings.environment import read_environment
from include.settings.retired import drop_retired, list_constants
from lab.replay.skill import ERROR_MAX
from lab.scheduling.planner_settings import PlannerSettings

RETIRED = [one for one in list_constants(Settings) if "lab/" in one.because]


def test_each_key_that_went_to_the_laboratory_has_there_the_value_that_settings_may_still_say() -> None:
    values = {one.path: one.value for one in RETIRED}
    assert values.pop(("forecast", "plan_error_max")) == ERROR_MAX
    of_planner = {path: reduce(getattr, path[1:], PlannerSettings()) for path in values}
    assert of_planner == values
    assert len(values) == 19


def test_a_file_with_them_opens_and_an_empty_section_of_them_as_well() -> None:
    written: dict[str, object] = {}
    for one in RETIRED:
        section = written
        for part in one.path[:-1]:
            section = section.setdefault(part, {})  # type: ignore[assignment]
        section[one.path[-1]] = one.value
    assert check_settings(written) == Settings()
    assert drop_retired(written) == {"forecast": {}, "planner": {"costs": {}, "timing": {}}}
    assert check_settings({"planner": {"reactive": {}}}) == Settings()


def test_a_variable_of_them_is_refused_as_a_key_of_a_file_is() -> None:
    variables = {"TIDEWISE__PLANNER__REACTIVE__HOLD_S": "60", "TIDEWISE__PLANNER__COSTS__RESCALE_MARGIN": "3.0"}
    values = read_environment(variables, Settings, {})
    assert values == {"planner": {"reactive": {"hold_s": 60}, "costs": {"rescale_margin": 3.0}}}
    with pytest.raises(SettingsError, match="hold_s = 60: is a constant now: 0") as refused:
        check_settings(values)
    assert len(refused.value.faults) == 1


def test_a_job_keeps_its_settings_beside_the_constants() -> None:
    job = Planner(horizon_h=12, costs=Costs(late_weight=2.0))
    made = PlannerSettings.of(job)
    assert (made.horizon_h, made.costs.late_weight, made.costs.rescale_margin) == (12, 2.0, 3.0)
    assert PlannerSettings.of(made) is made
    changed = made.with_values({"reactive.hold_s": 60, "timing.max_lead_s": 0})
    assert (changed.reactive.hold_s, changed.timing.max_lead_s, changed.costs.late_weight) == (60, 0, 2.0)
