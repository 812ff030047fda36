"""A change from the planner to the programme: what the planner left is opened, and the way back is open as well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.evaluation.evaluate_job import evaluate_job
from controller.view.job_view import EvaluationState
from include.settings import Planner, Settings
from include.settings.retired import drop_retired
from models.hosting.memories import recall
from models.policies.memory import dump
from models.policies.registry import policy
from spark_jobs.plan.build_plan import dump_plan_settings
from tests.unit.test_evaluation import FALL, NOW_S, RUNNING, SETTINGS, kept, planned, seen, view, windows

PROGRAMME = Settings(planner=Planner(policy="programme"))


def before_upgrade(**known: Any) -> Any:
    """Return a job with a plan of the planner, as the controller reads it under a policy that replans."""
    return view(seen=seen(), observations=windows(500.0), **planned(FALL), **known)


def test_the_planner_is_one_line_away() -> None:
    assert Settings().planner.policy == "programme"
    assert SETTINGS.planner.policy_of("c", "j") == "planner"


def test_a_plan_and_a_memory_of_the_planner_are_opened() -> None:
    after = evaluate_job(before_upgrade(), kept(due=(FALL,)), PROGRAMME, NOW_S)
    assert after.remembered is not None
    assert after.remembered.policy == "programme"
    assert after.plan_as_of_s is not None
    assert after.standing is None or after.standing.step_id != "s1"  # its steps were the planner's
    again = evaluate_job(before_upgrade(), after, PROGRAMME, NOW_S + 300)
    assert again.remembered is not None


def test_the_way_back_is_open() -> None:
    after = evaluate_job(before_upgrade(), kept(due=(FALL,)), PROGRAMME, NOW_S)
    back = evaluate_job(view(seen=seen(), observations=windows(500.0), **planned(FALL)), after, SETTINGS, NOW_S)
    assert back.remembered is not None
    assert back.remembered.policy == "planner"
    assert back.standing is not None
    assert back.standing.step_id == "s1"


def test_a_memory_of_an_earlier_release_has_no_prices() -> None:
    chosen = policy("programme")
    text = json.loads(dump(chosen.first_memory()))
    del text["charges"]
    assert recall(chosen, "programme", json.dumps(text), "programme") == (chosen.first_memory(), "")


def test_settings_of_a_plan_of_an_earlier_release_are_read() -> None:
    shaped = json.loads(dump_plan_settings(SETTINGS))
    shaped["planner"] |= {"load_quantile": 0.9, "reactive": {"hold_s": 0}}
    shaped["planner"]["costs"]["rescale_margin"] = 3.0
    for key in ("jobs",):
        del shaped["planner"][key]
    for key in ("recovery_within_s", "recovery_probability"):
        del shaped["planner"]["costs"][key]
    assert Planner(**drop_retired(shaped)["planner"]) == SETTINGS.planner


@pytest.mark.parametrize(("measure", "odd"), [("target_data_rate_per_s", 1e12), ("latency_ms", 9e5)])
def test_one_odd_poll_doubles_a_job_at_most_under_the_programme(measure: str, odd: float) -> None:
    known = windows(1000.0, count=12)
    getattr(known, measure)[-1:, 0] = odd
    met = evaluate_job(view(seen=seen(), observations=known), EvaluationState(), PROGRAMME, NOW_S)
    assert met.standing is None or max(met.standing.wanted[name] / RUNNING[name] for name in RUNNING) <= 2
