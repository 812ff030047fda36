"""The decision process of the MDP/RL paper: M/D/1, the chain of rates, actions, value iteration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.mdp_rl.pipeline import read_published_counts, responses_s
from include.domain.graph import JobGraph, Operator
from lab.policies.mdp_rl.bellman import best_value, solve, worth
from lab.policies.mdp_rl.mdp_rl_options import Weights
from lab.policies.mdp_rl.queueing import longest_path, response_s, utilisation
from lab.policies.mdp_rl.rate_chain import transition_probabilities, walk
from lab.policies.mdp_rl.space import Configurations


def test_md1_at_the_papers_rate() -> None:
    rho = utilisation(360 / 60, 3, 3.3)
    assert float(rho) == pytest.approx(0.60606, abs=1e-5)
    assert float(response_s(rho, 3.3)) == pytest.approx(0.53613, abs=1e-5)
    assert float(response_s(0.5, 2.0, variation=1.0)) == pytest.approx(1 / (2.0 - 1.0))  # M/M/1: 1 / (mu - lambda)


@pytest.mark.parametrize("rho", [1.0, 1.5, np.inf])
def test_an_overloaded_queue_never_answers(rho: float) -> None:
    assert response_s(rho, 3.3) == np.inf


def test_an_idle_operator_without_capacity_is_not_overloaded() -> None:
    assert utilisation(np.array([0.0, 1.0]), 1, 0.0).tolist() == [0.0, np.inf]


def test_a_pipelines_response_is_the_sum_and_a_graphs_its_longest_path() -> None:
    wide = JobGraph.from_operators(
        [Operator("s"), Operator("a", ("s",)), Operator("b", ("s",)), Operator("end", ("a", "b"))]
    )
    each = {"s": np.array(1.0), "a": np.array([2.0, 5.0]), "b": np.array([3.0, 0.5]), "end": np.array(10.0)}
    assert longest_path(wide, each).tolist() == [14.0, 16.0]
    services = [1 / 3.7, 1 / 3.3, 1 / 2.7]
    assert responses_s(2, 3)[0, 0, 0, 0] == pytest.approx(sum(services))  # the defect: 943 ms > 650 ms without any load


def test_the_counts_are_those_of_2013() -> None:
    counts = read_published_counts()
    probability = transition_probabilities(counts)
    assert counts.sum() == 525_532
    assert counts.shape == (52, 52)
    assert np.abs(probability.sum(axis=1) - 1).max() < 1e-12
    assert probability[16, 16] == pytest.approx(counts[16, 16] / counts[16].sum())
    mean_per_min = 20 * float(counts.sum(axis=1) @ np.arange(52)) / counts.sum()
    assert mean_per_min == pytest.approx(329.51, abs=0.5)


def test_a_level_that_was_never_left_stays() -> None:
    assert transition_probabilities([[0, 0], [3, 1]]).tolist() == [[1.0, 0.0], [0.75, 0.25]]


def test_a_new_path_follows_the_chain() -> None:
    probability = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    path = walk(probability, 60_000, np.random.default_rng(3))
    assert (path[0], len(path)) == (0, 60_001)
    counts = np.zeros((3, 3))
    np.add.at(counts, (path[:-1], path[1:]), 1)
    assert np.abs(transition_probabilities(counts) - probability).max() < 0.02


def test_actions_stop_at_the_bounds() -> None:
    one = Configurations((5,))
    assert [sorted(set(row.tolist())) for row in one.neighbours] == [[0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4]]
    three = Configurations((5, 5, 5))
    assert three.neighbours.shape == (125, 27)
    assert {len(set(row.tolist())) for row in three.neighbours} == {8, 12, 18, 27}
    assert (three.neighbours[:, 0] == np.arange(125)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_shifted_minima_are_the_bellman_operator(seed: int) -> None:
    """Against the definition, Eq. 3 and 4: every state, every action of the product."""
    draw = np.random.default_rng(seed)
    levels, limits, fee, gamma = 3, (2, 4), 0.4, 0.9
    probability = draw.dirichlet(np.ones(levels), levels)
    cost, values = draw.random((levels, *limits)), draw.random((levels, *limits))
    result = best_value(worth(cost, probability, values, gamma), fee, (1, 2))
    for level, one, two in product(range(levels), range(limits[0]), range(limits[1])):
        costs = []
        for a, b in product((-1, 0, 1), repeat=2):
            if 0 <= one + a < limits[0] and 0 <= two + b < limits[1]:
                after = sum(probability[level, to] * values[to, one + a, two + b] for to in range(levels))
                costs.append(cost[level, one + a, two + b] + fee * (a != 0 or b != 0) + gamma * after)
        assert result[level, one, two] == pytest.approx(min(costs))


def test_a_solution_solves_bellmans_equation_and_its_policy_is_worth_it() -> None:
    draw = np.random.default_rng(5)
    probability, cost = draw.dirichlet(np.ones(4), 4), draw.random((4, 3, 3))
    after, sweeps = solve(cost, probability, rescale_cost=0.4, discount=0.99)
    values = best_value(after, 0.4, (1, 2))
    assert np.abs(worth(cost, probability, values, 0.99) - after).max() < 1e-4
    assert sweeps < 1000
    space = Configurations((3, 3))
    policy = space.greedy(after, 0.4)
    flat = after.reshape(4, 9)
    worth_it = np.take_along_axis(flat, policy, axis=1) + 0.4 * (policy != np.arange(9))
    assert np.allclose(worth_it, values.reshape(4, 9))


def test_of_equal_actions_the_agent_stays() -> None:
    space = Configurations((3,))
    assert space.greedy(np.zeros((2, 3)), 0.0).tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("weights", [(0.5, 0.4, 0.4), (1.2, -0.2, 0.0)])
def test_weights_must_sum_to_one(weights: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        Weights(*weights)
