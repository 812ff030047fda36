"""Simulated time of the paper's policies: whole years where that is quick, months where an agent learns."""

import json

import numpy as np
import pytest

from benchmarks.papers.mdp_rl.mdp_rl_runs import run_centralised, run_decentralised, run_mdp, violations
from benchmarks.papers.mdp_rl.mdp_rl_tables import PUBLISHED_FILE
from benchmarks.papers.mdp_rl.pipeline import SLOTS, judge, objective_s, read_published_counts
from benchmarks.papers.mdp_rl.years import summary
from lab.policies.mdp_rl.learner import AgentLearner, Sweeps
from lab.policies.mdp_rl.rate_chain import transition_probabilities, walk

CHAIN = transition_probabilities(read_published_counts())
LEVELS = len(CHAIN)
YEAR = walk(CHAIN, SLOTS, np.random.default_rng(1))
MONTH = YEAR[: 43_200 + 1]


def test_the_centralised_mdp_meets_table_1() -> None:
    published = json.loads(PUBLISHED_FILE.read_text())["table_1"]["Centralized MDP"]
    figures = summary(run_mdp(YEAR, CHAIN, 3, objective_s(3)), 3).figures
    assert figures["avg. cost"] == pytest.approx(published["avg. cost"], rel=0.04)
    assert figures["avg. instances"] == pytest.approx(published["avg. instances"], rel=0.06)
    assert figures["cost identity error"] < 1e-9
    assert figures["run time"] < 30


def test_one_operator_costs_what_the_model_says() -> None:
    assert run_mdp(YEAR, CHAIN, 1, objective_s(1)).average_cost == pytest.approx(0.126, abs=0.001)


def test_knowing_the_response_model_is_almost_as_good_as_knowing_everything_and_learning_it_is_slow() -> None:
    mdp = run_mdp(MONTH, CHAIN, 3, objective_s(3))
    quick = Sweeps(1000, 50)
    plus = run_centralised(MONTH, LEVELS, 3, objective_s(3), knows_response=True, sweeps=quick)
    slow = run_centralised(MONTH, LEVELS, 3, objective_s(3), knows_response=False, sweeps=quick)
    assert mdp.average_cost <= plus.average_cost < 1.01 * mdp.average_cost
    assert slow.average_cost > 1.3 * plus.average_cost
    # and it does get better
    assert slow.cost[-10_000:].mean() < 0.6 * slow.cost[:10_000].mean()


def test_a_lower_utilisation_target_takes_more_instances_for_fewer_violations() -> None:
    paths, _ = run_decentralised(MONTH, LEVELS, 3, (0.6, 0.7, 0.8), knows_utilisation=True)
    late = violations(LEVELS, 3, objective_s(3))
    low, middle, high = (judge(MONTH, paths[:, at], late) for at in range(3))
    assert low.instances > middle.instances > high.instances
    assert low.violations < middle.violations < high.violations
    assert min(low.average_cost, high.average_cost) > middle.average_cost
    central = run_mdp(MONTH, CHAIN, 3, objective_s(3))
    assert low.reconfigurations > 2 * central.reconfigurations  # nobody coordinates the agents


def test_agents_of_one_batch_do_not_see_each_other() -> None:
    path = YEAR[:5001]
    together, _ = run_decentralised(path, LEVELS, 3, (0.6, 0.8), knows_utilisation=False)
    alone, _ = run_decentralised(path, LEVELS, 1, (0.8,), knows_utilisation=False)
    assert (together[:, 1, 0] == alone[:, 0, 0]).all()
    assert (np.abs(np.diff(together, axis=0)) <= 1).all()


def test_the_unknown_cost_is_an_exponential_average_of_the_cell_that_was_run() -> None:
    violated = np.zeros((2, 3, 1))
    violated[1, 0] = 1.0
    agent = AgentLearner((2, 3, 1), (1,), np.ones((3, 1)), violated, knows_response=False)
    for _ in range(2):
        agent.observe(0, 1, np.array([0]))
    agent.observe(0, 0, np.array([0]))
    assert agent.unknown[0, 0, 0] == pytest.approx(0.9 * (0.04 * 0.9 + 0.04))
    assert np.count_nonzero(agent.unknown) == 1
    assert agent.counts.tolist() == [[1, 2], [0, 0]]
