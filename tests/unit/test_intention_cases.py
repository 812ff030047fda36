"""What is wanted of a job: what is asked before a plan's step is sent, with measurements that are missing in part."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.evaluation.form_intention import form_intention, measure_load_per_s
from controller.view.job_view import EvaluationState
from controller.view.plan_rows import LoadBand
from include.domain.graph import JobGraph
from models.control.state import Intention
from models.policies.observations import MEASURES, Observations
from models.recovery.recovery_model import UNTRAINED
from tests.unit.test_evaluation import FALL, GRAPH, NOW_S, SETTINGS, plan, seen, stand, step, view, windows

BAND = LoadBand(450.0, 550.0)
NOTHING = Observations.nothing(2)
DISTURBED = replace(windows(9000.0), disturbed=np.ones(4, bool))


@pytest.fixture(autouse=True)
def no_warning_of_numpy() -> Iterator[None]:
    """A mean of nothing is no load, and no warning in the log at every tick either."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def intend(known: dict[str, Any], what: EvaluationState, band: LoadBand | None = None) -> Intention:
    result = form_intention(view(**{"seen": seen(), "plan": plan(step())} | known), what, SETTINGS, NOW_S, band)
    assert result is not None
    return result


def test_what_the_controller_finds_itself_comes_before_what_the_evaluation_held_back() -> None:
    held = stand(has_band=True, held_back="the load is at 500/s")
    old = intend({"plan": plan(step(), as_of_s=NOW_S - 3 * 3600), "observations": windows(500.0)}, held)
    assert (old.objection, "3.0 h old" in old.objection_detail) == ("stale_plan", True)


@pytest.mark.parametrize("observations", [None, NOTHING, windows(math.nan), DISTURBED])
def test_a_load_that_is_not_known_is_outside_of_no_band(observations: Observations | None) -> None:
    result = intend({"observations": observations}, stand(), BAND)
    assert (result.objection, result.objection_detail) == ("", "")


def test_a_load_that_is_known_is_held_against_the_band_of_the_forecast() -> None:
    assert intend({"observations": windows(500.0)}, stand(), BAND).objection == ""
    assert intend({"observations": windows(9000.0)}, stand(), BAND).objection == "load_outside_band"
    ingested = {"seen": seen(graph=None), "graph": GRAPH, "observations": windows(9000.0)}  # no kept reply holds one
    assert intend(ingested, stand(), BAND).objection == "load_outside_band"


@pytest.mark.parametrize("observations", [None, NOTHING])
@pytest.mark.parametrize(("hours", "objection"), [(1, ""), (4, "stale_metrics")])
def test_without_a_window_metrics_are_as_old_as_those_of_the_plan(
    observations: Observations | None, hours: int, objection: str
) -> None:
    made = replace(plan(step()), observations_until_s=NOW_S - 3600.0 * hours)
    assert intend({"plan": made, "observations": observations}, stand()).objection == objection


def test_a_job_catches_up_for_as_long_as_its_own_step_expects() -> None:
    """Any other step of the plan says nothing of it, and a step without an expectation leaves it to the models."""
    second = replace(step(FALL, "s2"), expected_recovery_s=300.0)
    unknown = replace(step(FALL, "s3"), expected_recovery_s=None)
    slow = replace(step(FALL, "s4"), expected_recovery_s=86_400.0)
    made = plan(step(FALL, "s1"), second, unknown, slow)
    of_models = UNTRAINED.downtime_rescale_s + 3 * UNTRAINED.downtime_rescale_sd_s
    expected = {"s1": 90.0, "s2": 300.0, "s3": of_models, "s4": 3600.0, "of no plan": of_models}
    assert of_models not in {90.0, 300.0}
    for step_id, seconds in expected.items():
        assert intend({"plan": made}, stand(step_id=step_id)).settle_s == pytest.approx(seconds)


def test_the_load_is_the_mean_over_the_undisturbed_windows_of_the_last_ten_minutes() -> None:
    known = windows(500.0)
    known.target_data_rate_per_s[:, 0] = [9000.0, 9000.0, 400.0, 600.0]
    assert measure_load_per_s(known, GRAPH) == 500.0
    disturbed = np.array([False, False, True, False])
    assert measure_load_per_s(replace(known, disturbed=disturbed), GRAPH) == 600.0


def test_a_job_whose_operators_have_all_finished_has_no_load() -> None:
    empty = {name: np.empty((4, 0)) for name in MEASURES}
    known = replace(windows(500.0), parallelism=np.empty((4, 0), int), **empty)
    assert math.isnan(measure_load_per_s(known, JobGraph(())))
