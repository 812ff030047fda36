"""DS2's arithmetic against published and hand-computed numbers.

The rates and results named ``one-source``, ``two-source`` and ``wordcount`` are those of the tests and example logs of
DS2 (github.com/strymon-system/ds2, controller/, MIT or Apache-2.0), ``paper-fig2`` and ``heron`` restate the paper, and
``nexmark-q3`` has rates from github.com/delftdata/espa-autoscaling (Apache-2.0).
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.domain.graph import GraphError, JobGraph, Operator
from lab.policies.spread_selectivity import spread_selectivity
from lab.policies.tuning.parallelism import optimal_parallelism, unrounded_parallelism
from models.topology import (
    required_rates,
    source_capacity,
)


@dataclass(frozen=True)
class Case:
    """Operators as name -> (parallelism, true processing rate, true output rate) and the published parallelisms."""

    operators: dict[str, tuple[int, float, float]]
    upstream: dict[str, tuple[str, ...]]
    expected: dict[str, int]
    raw: dict[str, float] | None = None


CHAIN = {"Op1": ("Source",), "Op2": ("Op1",)}
TWO = {"Op1": ("Source1", "Source2"), "Op2": ("Op1",)}
WORDS = {"FlatMap": ("Source",), "Count": ("FlatMap",)}
CASES = {
    "one-source-e0": Case(
        {"Source": (1, 0, 100), "Op1": (1, 50, 400), "Op2": (1, 100, 200)}, CHAIN, {"Op1": 2, "Op2": 8}
    ),
    "one-source-e7": Case(
        {"Source": (1, 0, 200), "Op1": (1, 10, 700), "Op2": (1, 201, 200)},
        CHAIN,
        {"Op1": 20, "Op2": 70},
        {"Op1": 20.0, "Op2": 69.651741},
    ),
    "two-source-e0": Case(
        {"Source1": (1, 0, 100), "Source2": (1, 0, 100), "Op1": (1, 50, 400), "Op2": (1, 100, 200)},
        TWO,
        {"Op1": 4, "Op2": 16},
    ),
    "two-source-e1": Case(
        {"Source1": (1, 0, 200), "Source2": (1, 0, 200), "Op1": (1, 40, 700), "Op2": (1, 99, 200)},
        TWO,
        {"Op1": 10, "Op2": 71},
        {"Op1": 10.0, "Op2": 70.707071},
    ),
    "two-source-e7": Case(
        {"Source1": (1, 0, 200), "Source2": (1, 0, 200), "Op1": (1, 10, 700), "Op2": (1, 201, 200)},
        TWO,
        {"Op1": 40, "Op2": 140},
        {"Op1": 40.0, "Op2": 139.303483},
    ),
    "wordcount-offline-e0": Case(
        {
            "Source": (1, 0.0, 109705.37486387165),
            "FlatMap": (2, 245126.38122966303, 2490645.825984851),
            "Count": (1, 1845391.0738689527, 0.0),
        },
        WORDS,
        {"FlatMap": 1, "Count": 1},
        {"FlatMap": 0.895092, "Count": 0.604034},
    ),
    "nexmark-q3": Case(
        {
            "auctions": (1, 0.0, 16424.42615156415),
            "filter": (4, 223361.82360441203, 104087.71461463636),
            "join": (4, 163070.46456424907, 100873.45963047985),
        },
        {"filter": ("auctions",), "join": ("filter", "auctions")},
        {"filter": 1, "join": 1},
        # by hand: 4 * 16424.426 / 223361.824; 4 * 16424.426 * (1 + 104087.715 / 223361.824) / 163070.465
        {"filter": 0.294131, "join": 0.590622},
    ),
    "paper-fig2": Case({"Source": (1, 0, 40), "Op1": (1, 10, 100), "Op2": (1, 200, 0)}, CHAIN, {"Op1": 4, "Op2": 2}),
    "heron-wordcount": Case(
        {"Source": (1, 0.0, 1e6), "FlatMap": (1, 1e5, 2e6), "Count": (1, 1e6, 0.0)}, WORDS, {"FlatMap": 10, "Count": 20}
    ),
}


def solve(case: Case) -> tuple[dict[str, int], dict[str, float]]:
    operators = [Operator(name, case.upstream.get(name, ())) for name in case.operators]
    graph = JobGraph.from_operators(operators)
    selectivity = {name: out / proc for name, (_, proc, out) in case.operators.items() if proc > 0}
    sources = {name: case.operators[name][2] for name in graph.sources}
    required = required_rates(graph, spread_selectivity(graph, selectivity), sources)
    inner = [name for name in graph.names if name not in graph.sources]
    arguments = {name: (required[name], case.operators[name][1], case.operators[name][0]) for name in inner}
    wanted = {name: int(optimal_parallelism(*given)) for name, given in arguments.items()}
    return wanted, {name: float(unrounded_parallelism(*given)) for name, given in arguments.items()}


@pytest.mark.parametrize("name", CASES)
def test_published_parallelism_is_found_in_one_step(name: str) -> None:
    wanted, raw = solve(CASES[name])
    assert wanted == CASES[name].expected
    for operator, value in (CASES[name].raw or {}).items():
        assert raw[operator] == pytest.approx(value, abs=1e-6)


def test_full_output_goes_to_every_successor_over_time() -> None:
    """A diamond: both branches see all of the source; the join sees 0.5 of one and 2 of the other."""
    graph = JobGraph.from_operators(
        [Operator("join", ("a", "b")), Operator("a", ("source",)), Operator("b", ("source",)), Operator("source")]
    )
    rates = required_rates(graph, spread_selectivity(graph, {"a": 0.5, "b": 2.0}), {"source": np.array([10.0, 40.0])})
    np.testing.assert_allclose(rates["a"], [10, 40])
    np.testing.assert_allclose(rates["b"], [10, 40])
    np.testing.assert_allclose(rates["join"], [25, 100])


def test_missing_rate_or_selectivity_is_named() -> None:
    graph = JobGraph.from_operators([Operator("source"), Operator("a", ("source",)), Operator("sink", ("a",))])
    with pytest.raises(GraphError, match="no rate for source 'source'"):
        required_rates(graph, spread_selectivity(graph, {"a": 1.0}), {})
    with pytest.raises(GraphError, match="no selectivity for 'a'"):
        spread_selectivity(graph, {})
    with pytest.raises(GraphError, match="no ratio for the edges source to a, a to sink"):
        required_rates(graph, {}, {"source": [1.0]})


def test_unknown_true_rate_keeps_the_parallelism_and_exact_quotients_are_not_rounded_up() -> None:
    assert optimal_parallelism([100.0, 100.0], [np.nan, 0.0], [3, 4]).tolist() == [3, 4]
    assert optimal_parallelism(0.3, 0.1, 1).tolist() == 3  # 0.3 / 0.1 is 2.9999999999999996
    assert optimal_parallelism(3 * 1.1, 1.1, 1).tolist() == 3  # 3.0000000000000004
    assert optimal_parallelism(0.0, 5.0, 2).tolist() == 1
    assert optimal_parallelism([4.0, 5.0], 1.0, 1, scaling_factor=0.2).tolist() == [5, 6]


@given(st.floats(1.0, 1e6), st.integers(1, 64), st.floats(1.0, 1e7))
def test_result_is_the_smallest_that_suffices(true_per_s: float, parallelism: int, required: float) -> None:
    wanted = int(optimal_parallelism(required, true_per_s, parallelism))
    one = true_per_s / parallelism
    assert wanted * one >= required * (1 - 1e-8)
    assert wanted == 1 or (wanted - 1) * one < required


def test_source_capacity_is_set_by_the_tightest_operator() -> None:
    graph = JobGraph.from_operators([Operator("s"), Operator("t"), Operator("a", ("s", "t")), Operator("b", ("a",))])
    capacity = {"a": 300.0, "b": 100.0}
    result = source_capacity(graph, spread_selectivity(graph, {"a": 0.5}), {"s": 0.75, "t": 0.25}, capacity)
    assert result == pytest.approx(200.0)
    assert source_capacity(
        graph, spread_selectivity(graph, {"a": 0.5}), {"s": 0.75, "t": 0.25}, capacity | {"s": 30.0}
    ) == pytest.approx(40.0)
    assert source_capacity(graph, spread_selectivity(graph, {"a": 0.0}), {"s": 1.0, "t": 0.0}, {"b": 1.0}) == float(
        "inf"
    )
