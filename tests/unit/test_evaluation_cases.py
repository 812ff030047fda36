"""The evaluation of a job: whose memory it begins with and leaves, what it limits, and what it leaves as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller.evaluation.evaluate_job import evaluate_job
from controller.view.job_view import EvaluationState
from controller.view.plan_rows import PolicyMemory
from include.settings import Planner, Settings, check_settings
from lab.policies.baselines.reactive import ReactiveMemory, Recommendation
from lab.policies.conttune.tuning_loop import TuningMemory
from models.control.state import Origin
from models.hosting.memories import store
from models.policies.evaluation.pending_steps import PendingStep
from models.policies.memory import load
from models.policies.observations import MEASURES, Observations
from models.policies.tidewise.planned_steps import PlannedStep
from models.policies.tidewise.programme_memory import ProgrammeMemory
from models.policies.tuning.capacity_history import ObservedCapacity
from models.scheduling.step_band import StepBand
from tests.unit.test_evaluation import (
    FALL,
    NOW_S,
    PLANNED_S,
    RUNNING,
    SETTINGS,
    plan,
    planned,
    seen,
    step,
    view,
    windows,
)
from tests.unit.test_present_names import AFTER, BEFORE, renamed_job

REACTIVE, TUNED, PROGRAMME, FOLLOWED = (
    Settings(planner=Planner(policy=name)) for name in ("reactive", "conttune_a3", "programme", "need_vector")
)


def wanted_of(state: EvaluationState) -> dict[str, int]:
    assert state.standing is not None
    return dict(state.standing.wanted)


def remember(policy: str, memory: Any) -> PolicyMemory:
    return PolicyMemory(policy, store(policy, memory) or "")


def short_of(load_per_s: float, share: float) -> Observations:
    """Return an hour of a job that processes a share of its load with all that its map can do."""
    result = windows(load_per_s, count=12)
    result.busy_share[:, 1] = 1.0
    result.processing_rate_per_s[:] = share * load_per_s
    for rates in (result.true_processing_rate_per_s, result.true_output_rate_per_s):
        rates[:, 1] = share * load_per_s
    result.latency_ms[:, 0] = np.linspace(0.0, 900_000.0, 12)
    return result


def test_a_policy_that_reacts_begins_with_what_its_plan_left_and_goes_on_with_its_own() -> None:
    """CPU use asks for six workers; what was recommended a moment ago holds a job of eight where it is."""
    idle = windows(500.0)
    idle.busy_share[:] = 0.13
    eight: dict[str, Any] = {"seen": seen(running={"source": 8, "map": 8}), "observations": idle}
    left = remember("reactive", ReactiveMemory(recommended=(Recommendation(NOW_S - 60, 8),)))
    assert max(wanted_of(evaluate_job(view(**eight), EvaluationState(), REACTIVE, NOW_S)).values()) < 8
    begun = evaluate_job(view(**eight, left=left), EvaluationState(), REACTIVE, NOW_S)
    assert begun.standing is None
    own = EvaluationState(remembered=remember("reactive", ReactiveMemory()))
    assert max(wanted_of(evaluate_job(view(**eight, left=left), own, REACTIVE, NOW_S)).values()) < 8
    assert begun.remembered is not None
    recommended = load(ReactiveMemory, begun.remembered.memory).recommended
    assert [one.at_s for one in recommended] == [NOW_S - 60, NOW_S]


def test_what_a_policy_that_replans_remembers_is_there_the_next_time() -> None:
    """It knows the load from an hour of windows; of one more window alone it would know nothing."""
    known = view(seen=seen(), observations=windows(900.0, count=12))
    first = evaluate_job(known, EvaluationState(), PROGRAMME, NOW_S)
    assert first.remembered is not None
    assert first.remembered.policy == "programme"
    one = view(seen=seen(), observations=windows(900.0, count=1))
    assert evaluate_job(one, EvaluationState(), PROGRAMME, NOW_S).standing is None
    assert wanted_of(evaluate_job(one, first, PROGRAMME, NOW_S)) == wanted_of(first)


def test_a_newer_plan_gives_a_policy_that_replans_its_steps() -> None:
    """The job is not seen, so that the step of the plan goes out as planned."""
    due = PendingStep(NOW_S - 300, NOW_S + 3600, {"source": 1, "map": 2}, 1000.0, "as forecast")
    left = remember(
        "programme", ProgrammeMemory(due=(PlannedStep(due, RUNNING, 2, StepBand(0.0, 2000.0, 0.0, 60.0), 2000.0, 0.1),))
    )
    before = EvaluationState(remembered=remember("programme", ProgrammeMemory()), plan_as_of_s=PLANNED_S - 3600)
    newer = evaluate_job(view(plan=plan(step()), left=left), before, PROGRAMME, NOW_S)
    assert wanted_of(newer) == {"source": 1, "map": 2}
    assert evaluate_job(view(plan=plan(step())), before, PROGRAMME, NOW_S).standing is None
    known = replace(before, plan_as_of_s=PLANNED_S)
    assert evaluate_job(view(plan=plan(step()), left=left), known, PROGRAMME, NOW_S).standing is None


@pytest.mark.parametrize("known", [{}, {"observations": windows(500.0)}])
def test_a_memory_takes_the_present_names_also_while_its_policy_is_not_asked(known: dict[str, Any]) -> None:
    histories = {"source": (ObservedCapacity(1, (900.0,)),), "map": (ObservedCapacity(4, (400.0,)),)}
    before = EvaluationState(remembered=remember("conttune_a3", TuningMemory(histories=histories)), operators=BEFORE)
    away = replace(renamed_job(), state="RESTARTING", running={})
    met = evaluate_job(view(seen=away, **known), before, TUNED, NOW_S)
    assert met.standing is None
    assert met.operators == AFTER
    assert met.remembered is not None
    renamed = load(TuningMemory, met.remembered.memory).histories
    assert renamed == {"map": histories["source"], "map[2]": histories["map"]}


def test_a_step_of_a_plan_goes_out_whole_whatever_a_single_window_shows() -> None:
    """Only what an evaluation decides itself from the windows is limited until two of them agree."""
    rise = replace(FALL, parallelism={"source": 1, "map": 12})
    known = windows(1000.0)
    known.target_data_rate_per_s[-1:, 0] = 3000.0
    met = evaluate_job(view(seen=seen(), observations=known, **planned(rise)), EvaluationState(), SETTINGS, NOW_S)
    assert met.standing is not None
    assert (wanted_of(met), met.standing.origin) == ({"source": 1, "map": 12}, Origin.PLAN)
    assert met.standing.reason == "as forecast"


@pytest.mark.parametrize("columns", [1, 3])
def test_windows_of_another_graph_agree_with_nothing(columns: int) -> None:
    """What the memory of the load asks for is limited, as long as no window of the present operators confirms it."""
    learnt = evaluate_job(view(seen=seen(), observations=short_of(1000.0, 0.3)), EvaluationState(), PROGRAMME, NOW_S)
    assert wanted_of(learnt)["map"] > 2 * RUNNING["map"]
    measures = {name: np.full((12, columns), 1000.0) for name in MEASURES}
    other = replace(windows(1000.0, count=12), parallelism=np.full((12, columns), 4), **measures)
    met = evaluate_job(view(seen=seen(), observations=other), learnt, PROGRAMME, NOW_S)
    assert wanted_of(met)["map"] == 2 * RUNNING["map"]


@pytest.mark.parametrize("schedules", [{}, {"night": {"cron": "0 0 * * *", "duration_s": 86000, "slots_max": 20}}])
def test_a_policy_whose_plan_is_followed_is_shown_no_measurement(
    schedules: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Its step goes out with the plan's own reason, and that nothing is seen of the job is no matter."""
    caplog.set_level("INFO", "controller.evaluation")
    limits = {"jobs": {"c/orders": {"schedules": schedules}}}
    values = {"planner": {"policy": "need_vector"}, "limits": limits, "clusters": {"c": {"rest_url": "http://c:1"}}}
    settings = check_settings(values)
    unseen = evaluate_job(view(plan=plan(step())), EvaluationState(), settings, NOW_S)
    watched = evaluate_job(view(plan=plan(step()), seen=seen(), observations=windows(9000.0)), unseen, settings, NOW_S)
    assert unseen.standing is not None
    assert unseen.standing == watched.standing
    assert unseen.standing.reason == "as forecast"
    assert not caplog.records


def test_a_job_that_runs_as_its_policy_wants_it_is_left_as_it_is() -> None:
    """Workers of three quarters of the load's busy share: the rule asks for as many as there are."""
    known = windows(500.0)
    known.busy_share[:] = 0.35 / 1.25
    met = evaluate_job(view(seen=seen(), observations=known), EvaluationState(), REACTIVE, NOW_S)
    assert met.standing is None
    assert met.remembered is not None
