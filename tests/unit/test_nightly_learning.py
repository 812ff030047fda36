"""Learning from a history by night: the same as online, once, and only by those that say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.policy_catalogue import catalogue, names_where
from include.settings import Planner
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import History, Situation
from models.policies.registry import policy
from models.scheduling.demand import SourceForecast

NIGHTLY = names_where(catalogue(), learns_nightly=True)
WINDOW_S, START_S = 300, 1_763_596_800  # midnight
GRAPH = JobGraph((Operator("source"), Operator("map", ("source",))))
P = np.arange(1, 9)
CURVE = CapacityCurve(P, 1000.0 * P, 0.0 * P, P.copy(), 1000.0 * P, 1000.0)
MODELS = JobModels(
    {"source": CURVE, "map": CURVE},
    {"source": 1.0, "map": 1.0},
    RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 3),
    LatencyModel(np.zeros(0), np.zeros(0)),
)


def windows(count: int) -> Observations:
    """A load that swings between 500 and 2500 records/s over two hours, run with 3 instances."""
    at = START_S + WINDOW_S * np.arange(count)
    load = 1500.0 + 1000.0 * np.sin(2 * np.pi * at / 7200.0)
    columns = {name: np.full((count, 2), np.nan) for name in MEASURES}
    columns["processing_rate_per_s"] = np.stack([load, load], axis=1)
    columns["target_data_rate_per_s"][:, 0] = load
    columns["true_processing_rate_per_s"] = np.full((count, 2), 3000.0)
    columns["busy_share"] = columns["processing_rate_per_s"] / 3000.0
    return Observations(
        window_start_s=at,
        window_s=WINDOW_S,
        parallelism=np.full((count, 2), 3),
        disturbed=np.zeros(count, bool),
        **columns,
    )


def history(seen: Observations) -> History:
    return History(int(seen.window_start_s[-1]) + WINDOW_S, GRAPH, MODELS, 8, Planner(), seen)


def situation(seen: Observations) -> Situation:
    at = int(seen.window_start_s[-1]) + WINDOW_S
    forecast = SourceForecast(at, 3600, {"source": np.full((4, 26), 1500.0)})
    return make_situation(at, GRAPH, {"source": 3, "map": 3}, MODELS, forecast, 8, Planner(), seen)


def learner(name: str) -> Any:
    return policy(name)


def test_the_entries_name_those_that_can():
    assert {name for name in catalogue() if hasattr(policy(name), "learn")} == NIGHTLY
    profiled = names_where(catalogue(), needs_profile=True)
    assert {name for name in catalogue() if hasattr(policy(name).first_memory(), "profile")} == profiled


def test_a_policy_of_one_job_is_enough():
    assert not NIGHTLY & Planner().policies_in_use
    assert NIGHTLY & Planner(policy="rl").policies_in_use
    assert NIGHTLY & Planner(policies={"c/j": "mdp"}).policies_in_use
    assert not NIGHTLY & Planner(policies={"c/j": "phoebe"}).policies_in_use


@pytest.mark.parametrize("name", sorted(NIGHTLY))
def test_a_night_teaches_what_hours_of_watching_would_have(name):
    observed, chosen = windows(48), learner(name)
    by_night = chosen.learn(history(observed))
    online = chosen.first_memory()
    for hour in range(4):  # decisions see the last two hours, so half of what they see is known
        _, online = chosen.decide(situation(observed.rows(np.arange(max(0, 12 * hour - 12), 12 * hour + 12))), online)
    assert by_night.agents == online.agents
    assert by_night.last_window_s == online.last_window_s
    assert chosen.learn(history(observed)) == by_night


@pytest.mark.parametrize("name", sorted(NIGHTLY))
def test_the_plan_after_a_night_counts_no_window_twice(name):
    observed, chosen = windows(60), learner(name)
    memory = chosen.learn(history(observed.rows(np.arange(48))))
    before = {agent: known.slots for agent, known in memory.agents.items()}
    assert before
    _, after = chosen.decide(situation(observed.rows(np.arange(36, 60))), memory)  # 12 of 24 windows are new
    assert {agent: known.slots for agent, known in after.agents.items()} == {
        agent: slots + 12 for agent, slots in before.items()
    }
    _, again = chosen.decide(situation(observed.rows(np.arange(36, 60))), after)
    assert again.agents == after.agents


@pytest.mark.parametrize("name", sorted(NIGHTLY))
def test_the_first_plan_after_a_night_can_decide_though_it_learnt_all_there_is(name):
    observed, chosen = windows(48), learner(name)
    schedule, _ = chosen.decide(situation(observed.rows(np.arange(24, 48))), chosen.learn(history(observed)))
    assert "No rate is known" not in schedule.decisions[0].reason
    assert "needed before an agent acts" not in schedule.decisions[0].reason


def test_the_mdp_plans_with_what_the_night_taught():
    memory = learner("mdp").learn(history(windows(48)))
    assert memory.planned == memory.agents
    assert memory.planned_day == START_S // 86_400


@pytest.mark.parametrize("name", sorted(NIGHTLY))
def test_nothing_is_learnt_from_nothing(name):
    chosen = learner(name)
    empty = History(START_S, GRAPH, MODELS, 8, Planner(), Observations.nothing(2))
    assert chosen.learn(empty) == chosen.first_memory()
