"""Dragster's model of a job: throughput functions, flow under limited capacity, the Lagrangian and its targets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.domain.graph import JobGraph, Operator
from lab.policies.dragster.lagrangian import (
    SaddlePointProblem,
    gradient_targets,
    multipliers_after,
    saddle_targets,
    step_size,
)
from lab.policies.dragster.network import OperatorNetwork, demand, flow, network
from lab.policies.dragster.throughput import Linear, Minimum, Tanh, ThroughputFunction

CHAIN = JobGraph((Operator("source"), Operator("map", ("source",)), Operator("shuffle", ("map",))))
FUNCTIONS: list[ThroughputFunction] = [Linear((0.5, 2.0)), Minimum((0.5, 2.0)), Tanh(300.0, (0.01, 0.02))]
rates = st.floats(0, 1e4)


def chain(factor: float = 1.0) -> OperatorNetwork:
    return network(CHAIN, {"map": Linear((factor,))})


def test_the_three_functions_of_equation_2() -> None:
    received = np.array([100.0, 30.0])
    assert [h(received) for h in FUNCTIONS] == pytest.approx([110.0, 50.0, 300.0 * math.tanh(1.6)])


@pytest.mark.parametrize("h", FUNCTIONS)
@given(a=st.tuples(rates, rates), b=st.tuples(rates, rates), share=st.floats(0, 1))
def test_throughput_functions_increase_and_are_concave(h, a, b, share) -> None:
    left, right = np.array(a), np.array(b)
    middle = h(share * left + (1 - share) * right)
    assert middle >= share * h(left) + (1 - share) * h(right) - 1e-6
    assert h(np.maximum(left, right)) >= max(h(left), h(right)) - 1e-9


def test_weights_must_fit_and_not_fall() -> None:
    with pytest.raises(ValueError, match="3 predecessors"):
        Linear((1.0, 2.0))(np.ones(3))
    with pytest.raises(ValueError, match="not negative"):
        Minimum((-1.0,))


def test_capacity_truncates_what_is_sent_but_not_what_is_offered() -> None:
    result = flow(chain(2.0), {"source": 100.0}, {"map": 150.0, "shuffle": 400.0})
    assert result.offered == {"map": 200.0, "shuffle": 150.0}
    assert result.sent == {"map": 150.0, "shuffle": 150.0}
    assert result.sink == 150.0
    assert demand(chain(2.0), {"source": 100.0}).sink == 200.0


def test_capacity_is_split_among_successors_and_sinks_add_up() -> None:
    graph = JobGraph((Operator("s"), Operator("a", ("s",)), Operator("b", ("a",)), Operator("c", ("a",))))
    result = flow(network(graph, {}), {"s": 100.0}, {"a": 120.0, "c": 10.0})
    assert result.offered["a"] == 200.0  # the full output to each successor
    assert result.sent == {"a": 120.0, "b": 60.0, "c": 10.0}
    assert result.sink == 70.0


def test_a_join_waits_for_its_slower_side() -> None:
    graph = JobGraph((Operator("l"), Operator("r"), Operator("join", ("l", "r"))))
    assert demand(network(graph, {"join": Minimum()}), {"l": 5.0, "r": 3.0}).sink == 3.0


@given(
    y=st.tuples(st.floats(1, 300), st.floats(1, 300)),
    price=st.tuples(st.floats(0, 3), st.floats(0, 3)),
)
def test_slopes_are_the_derivative_that_can_be_written_down(y, price) -> None:
    """L = min(s, y1, y2)/s - p1 (s - y1)/s - p2 (min(s, y1) - y2)/s for a chain of two operators."""
    s, (y1, y2), (p1, p2) = 200.0, y, price
    kinks = [abs(y1 - y2), abs(y1 - s), abs(y2 - s)]
    if min(kinks) < 0.1:
        return
    problem = SaddlePointProblem(chain(), {"source": s}, {"map": s, "shuffle": s})
    result = problem.slopes({"map": y1, "shuffle": y2}, {"map": p1, "shuffle": p2})
    below = min(s, y1, y2)
    expected = {
        "map": (below == y1) + p1 - p2 * (y1 < s),
        "shuffle": (below == y2) + p2,
    }
    assert result == pytest.approx(expected, abs=1e-4)


def test_excess_counts_what_the_operator_above_lets_through() -> None:
    problem = SaddlePointProblem(chain(), {"source": 100.0}, {"map": 100.0, "shuffle": 100.0})
    assert problem.excess({"map": 60.0, "shuffle": 70.0}) == pytest.approx({"map": 0.4, "shuffle": -0.1})


def test_multipliers_grow_with_excess_and_never_fall_below_zero() -> None:
    assert step_size(4) == 0.5
    after = multipliers_after({"map": 0.1, "gone": 0.7}, {"map": 0.4, "shuffle": -0.2}, 0.5)
    assert after == pytest.approx({"map": 0.3, "shuffle": 0.0, "gone": 0.7})


def test_the_saddle_target_is_the_smallest_maximiser() -> None:
    """More capacity than offered raises f no further; less lowers it."""
    problem = SaddlePointProblem(chain(0.5), {"source": 100.0}, {"map": 50.0, "shuffle": 50.0})
    most = {"map": 1e9, "shuffle": 1e9}
    target = saddle_targets(problem, {}, most, 0.25)
    best = problem.lagrangian(target, {})
    assert target == {"map": 50.0, "shuffle": 50.0}
    assert best == pytest.approx(1.0)
    assert problem.lagrangian({name: 2 * y for name, y in target.items()}, {}) == pytest.approx(best)
    assert all(problem.lagrangian({**target, name: 49.0}, {}) < best for name in target)


def test_a_multiplier_raises_the_target_of_its_operator_alone_up_to_what_it_is_capable_of() -> None:
    problem = SaddlePointProblem(chain(), {"source": 100.0}, {"map": 100.0, "shuffle": 100.0})
    prices, ceilings = {"map": 0.4, "shuffle": 0.0}, {"map": 1000.0, "shuffle": 1000.0}
    assert saddle_targets(problem, prices, ceilings, 0.5) == pytest.approx({"map": 120.0, "shuffle": 100.0})
    assert saddle_targets(problem, prices, ceilings | {"map": 110.0}, 0.5)["map"] == pytest.approx(110.0)
    assert saddle_targets(problem, prices, ceilings | {"map": 50.0}, 0.5)["map"] == pytest.approx(100.0)
    assert saddle_targets(problem, prices, ceilings, 0.0)["map"] == pytest.approx(100.0)
    # it is the maximiser of L less half the squared distance from the demand over the weight
    result = saddle_targets(problem, prices, ceilings, 0.5)

    def proximal(map_per_s: float) -> float:
        away = (map_per_s - 100.0) / 100.0
        return problem.lagrangian({**result, "map": map_per_s}, prices) - away**2 / (2 * 0.5)

    assert max(range(90, 151), key=proximal) == 120


def test_the_gradient_moves_bottlenecks_and_gives_back_half_of_a_surplus() -> None:
    problem = SaddlePointProblem(chain(), {"source": 100.0}, {"map": 100.0, "shuffle": 100.0})
    wanted = {"map": 100.0, "shuffle": 100.0}
    result = gradient_targets(problem, {"map": 20.0, "shuffle": 160.0}, {}, wanted, 0.5)
    assert result == pytest.approx({"map": 70.0, "shuffle": 130.0})
    near = gradient_targets(problem, {"map": 80.0, "shuffle": 90.0}, {}, wanted, 0.5)
    assert near == pytest.approx({"map": 100.0})  # never past what is wanted; Shuffle limits nothing and stays
