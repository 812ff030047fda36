"""The product without the laboratory: settings and stages go on, and a name of it is refused."""

from __future__ import annotations

import pytest
from product_alone import run_alone

from include.settings import SettingsError, check_settings


def test_default_settings_and_the_stages_of_the_product_are_there() -> None:
    code = "from include.settings import load_settings; from include.stage_catalogue import stages"
    assert run_alone(f"{code}; print(load_settings().planner.policy, *stages())") == (
        "programme ingest train forecast plan report"
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ('{"planner": {"policy": "ds2"}}', "install tidewise-lab"),
        ('{"backtest": {"policies": ["phoebe"]}}', "install tidewise-lab"),
        ('{"policies": {"dhalion": {}}}', "install tidewise-lab"),
    ],
)
def test_a_policy_of_it_is_refused_with_what_to_install(values: str, told: str) -> None:
    code = f"""
from include.settings import SettingsError, check_settings
try:
    check_settings({values})
except SettingsError as error:
    print(str(error).replace(chr(10), " "))
"""
    assert told in run_alone(code)


def test_a_stage_of_it_is_refused_with_what_to_install() -> None:
    code = """
from include.stage_catalogue import StageCatalogueError, stage_of
try:
    stage_of("backtest")
except StageCatalogueError as error:
    print(error)
"""
    assert "make setup" in run_alone(code)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"planner": {"policy": "planner_v2"}}, "no policy is called 'planner_v2'; write planner"),
        ({"planner": {"policies": {"c/j": "planner_v2"}}}, "write planner"),
        ({"policies": {"planner_v2": {}}}, "write planner"),
        ({"backtest": {"policies": ["planner_v2"]}}, "write planner"),
        ({"backtest": {"policies": ["planner_no_lead"]}}, "in `make replay` alone"),
        ({"advise": {"policies": ["planner_no_reactive"]}}, "in `make replay` alone"),
        ({"profiling": {"adapter": "models.simulation.mine:adapter"}}, 'write "lab.simulation.mine:adapter"'),
        ({"profiling": {"adapter": "spark_jobs.profiling.adapters:x"}}, 'write "lab.stages.profiling.adapters:x"'),
    ],
)
def test_what_went_is_refused_with_what_to_write_instead(values: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(values)
    assert told in str(refused.value)
