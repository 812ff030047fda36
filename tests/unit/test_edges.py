"""Records over each edge of a graph: what Flink counts per vertex, divided over the edges."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from include.domain.graph import GraphError, JobGraph, Operator
from models.topology import (
    complete_ratios,
    learn_edge_ratios,
    measure_edge_ratios,
    required_rates,
    source_capacity,
)
from models.topology.edges import find_unknown


def graph_of(**upstream: tuple[str, ...]) -> JobGraph:
    return JobGraph.from_operators([Operator(name, feeding) for name, feeding in upstream.items()])


def ratios_of(graph: JobGraph, taken: Mapping[str, float], sent: Mapping[str, float]) -> dict[tuple[str, str], float]:
    rates = (np.array([[side.get(name, math.nan) for name in graph.names]]) for side in (taken, sent))
    return measure_edge_ratios(graph, *rates, np.full((1, len(graph.names)), 0.5))


ROUTE = graph_of(source=(), route=("source",), big=("route",), small=("route",))


def test_side_outputs_are_measured_where_they_arrive() -> None:
    """A real cluster (Flink 2.1.3): route sent 22,730, of which big took 20,448 and small 2,272."""
    taken = {"source": 22_730.0, "route": 22_730.0, "big": 20_448.0, "small": 2_272.0}
    result = ratios_of(ROUTE, taken, {"source": 22_730.0, "route": 22_730.0})
    assert result["route", "big"] == pytest.approx(0.8996, abs=1e-4)
    assert result["route", "small"] == pytest.approx(0.09996, abs=1e-4)
    required = required_rates(ROUTE, result, {"source": [1000.0]})
    assert required["big"] == pytest.approx(899.6, abs=0.1)
    assert required["small"] == pytest.approx(99.96, abs=0.1)


def test_what_arrives_counts_whatever_a_vertex_with_several_tails_sends() -> None:
    """`parse -> (keyA, keyB)`: 14,820 sent in three exchanges of some 4,900 each."""
    graph = graph_of(numbers=(), a=("numbers",), b=("numbers",), c=("numbers",))
    result = ratios_of(graph, {"numbers": 4_940.0, "a": 4_920.0, "b": 4_930.0, "c": 4_890.0}, {"numbers": 14_820.0})
    assert [round(result["numbers", name], 2) for name in "abc"] == [1.0, 1.0, 0.99]


def test_an_edge_into_a_join_is_what_the_other_inputs_leave() -> None:
    """Nexmark's q5: a window feeds a join, and a second window that feeds the same join."""
    graph = graph_of(source=(), window=("source",), maximum=("window",), join=("window", "maximum"))
    taken = {"source": 1000.0, "window": 400.0, "maximum": 1.6, "join": 602.0}
    result = ratios_of(graph, taken, {"source": 400.0, "window": 603.6, "maximum": 2.0})
    assert result["window", "maximum"] == pytest.approx(1.6 / 400)
    assert result["maximum", "join"] == pytest.approx(2.0 / 1.6)
    assert result["window", "join"] == pytest.approx(600.0 / 400)


def test_two_edges_between_the_same_operators_are_one() -> None:
    graph = graph_of(source=(), join=("source", "source"))
    result = ratios_of(graph, {"source": 10.0, "join": 20.0}, {"source": 20.0})
    assert result == {("source", "join"): 2.0}
    assert required_rates(graph, result, {"source": 50.0})["join"] == 100.0


def test_what_nothing_settles_is_unknown_and_makes_the_demand_behind_it_unknown() -> None:
    graph = graph_of(source=(), a=("source",), b=("source",), c=("a", "b"), d=("a", "b"), e=("d",))
    taken = {"source": 10.0, "a": 10.0, "b": 10.0, "c": 12.0, "d": 8.0, "e": 8.0}
    result = ratios_of(graph, taken, {"source": 10.0, "a": 10.0, "b": 10.0, "d": 8.0})
    assert find_unknown(graph, result) == (("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"))
    required = required_rates(graph, result, {"source": 10.0})
    assert required["a"] == 10.0
    assert np.isnan([required[name] for name in "cde"]).all()
    assert source_capacity(graph, result, {"source": 1.0}, {"a": 50.0, "c": 1.0, "e": 1.0}) == 50.0


def test_edges_that_seem_to_carry_more_than_arrives_are_unknown_beyond_what_is_under_way() -> None:
    graph = graph_of(a=(), b=(), c=("a",), join=("a", "b"))
    taken = {"a": 10.0, "b": 100.0, "c": 10.0, "join": 99.0}
    assert ratios_of(graph, taken, {"b": 100.0})["a", "join"] == 0.0
    assert math.isnan(ratios_of(graph, {**taken, "join": 90.0}, {"b": 100.0})["a", "join"])


def test_an_operator_that_was_not_measured_is_known_by_its_only_feeder() -> None:
    graph = graph_of(source=(), sink=("source",))
    assert ratios_of(graph, {"source": 10.0}, {"source": 5.0}) == {("source", "sink"): 0.5}
    assert math.isnan(ratios_of(ROUTE, {"source": 10.0, "route": 10.0, "big": 9.0}, {"route": 10.0})["route", "small"])


def test_ratios_are_of_windows_in_which_both_ends_were_measured() -> None:
    graph = graph_of(source=(), a=("source",), b=("source",))
    taken = np.array([[100.0, 10.0, 90.0], [1000.0, np.nan, 900.0]])
    result = measure_edge_ratios(graph, taken, np.full((2, 3), np.nan))
    assert result == {("source", "a"): pytest.approx(0.1), ("source", "b"): pytest.approx(0.9)}


CHAIN = graph_of(source=(), slow=("source",), sink=("slow",))


def filling(windows: int, idle: float, sent_per_s: float = 700.0) -> dict[tuple[str, str], float]:
    """Return the ratios of a job of which the second operator takes 500/s."""
    taken = np.array([[700.0, 500.0, 500.0]] * windows)
    sent = np.array([[sent_per_s, 500.0, 0.0]] * windows)
    return measure_edge_ratios(CHAIN, taken, sent, np.array([[0.9, idle, 0.6]] * windows))


def test_what_fills_the_buffers_before_an_operator_went_over_its_edge() -> None:
    """700/s are sent to an operator that can take 500/s: it is asked for 140% of that."""
    result = filling(2, idle=0.0)
    assert result["source", "slow"] == pytest.approx(1.0)
    assert required_rates(CHAIN, result, {"source": 700.0})["slow"] == pytest.approx(700.0)
    assert result["slow", "sink"] == 1.0


def test_where_no_idle_time_is_known_what_was_sent_is_the_ratio() -> None:
    taken, sent = np.array([[700.0, 500.0, 500.0]] * 3), np.array([[700.0, 500.0, 0.0]] * 3)
    for ratios in (measure_edge_ratios(CHAIN, taken, sent), learn_edge_ratios(CHAIN, taken, sent)):
        assert ratios["source", "slow"] == pytest.approx(1.0)
        assert required_rates(CHAIN, ratios, {"source": [700.0]})["slow"] == pytest.approx(700.0)


def test_a_young_job_is_learnt_with_what_fills_its_buffers() -> None:
    taken, sent = np.array([[700.0, 500.0, 500.0]] * 3), np.array([[700.0, 500.0, 0.0]] * 3)
    full, idle = (np.array([[0.9, share, 0.6]] * 3) for share in (0.0, 0.5))
    assert learn_edge_ratios(CHAIN, taken, sent, full)["source", "slow"] == pytest.approx(1.0)
    assert learn_edge_ratios(CHAIN, taken, sent, idle)["source", "slow"] == pytest.approx(5 / 7)


def test_nothing_waits_before_an_operator_with_idle_time() -> None:
    """A sink that is chained to a vertex counts its records among what the vertex sends."""
    assert filling(2, idle=0.5)["source", "slow"] == pytest.approx(500 / 700)
    assert filling(2, idle=math.nan)["source", "slow"] == pytest.approx(500 / 700)


def test_what_a_chained_sink_counts_is_not_put_down_to_an_operator_that_gets_busy() -> None:
    taken = np.array([[100.0, 100.0, 100.0]] * 6 + [[500.0, 450.0, 450.0]] * 2)
    sent = np.array([[200.0, 100.0, 0.0]] * 6 + [[1000.0, 450.0, 0.0]] * 2)
    idle = np.array([[0.9, 0.8, 0.9]] * 6 + [[0.5, 0.0, 0.5]] * 2)
    assert measure_edge_ratios(CHAIN, taken, sent, idle)["source", "slow"] == pytest.approx(1.0)


def test_counters_of_different_moments_cancel_out_and_buffers_that_empty_lower_no_ratio() -> None:
    taken = np.array([[100.0, 90.0, 90.0], [100.0, 110.0, 110.0]])
    idle = np.full((2, 3), 0.05)
    assert measure_edge_ratios(CHAIN, taken, np.full((2, 3), 100.0), idle)["source", "slow"] == pytest.approx(1.0)
    assert filling(2, idle=0.0, sent_per_s=400.0)["source", "slow"] == pytest.approx(500 / 700)


def test_what_piles_up_before_one_output_is_not_put_down_to_the_others() -> None:
    taken, sent = np.array([[1000.0, 1000.0, 600.0, 100.0]]), np.array([[1000.0, 1000.0, 0.0, 0.0]])
    result = measure_edge_ratios(ROUTE, taken, sent, np.array([[0.5, 0.5, 0.0, 0.9]]))
    assert result["route", "big"] == pytest.approx(0.9)
    assert result["route", "small"] == pytest.approx(0.1)


def test_learnt_ratios_assume_one_for_one_only_where_nothing_was_ever_taken() -> None:
    taken = np.array([[10.0, 0.0, np.nan, 0.0]] * 2)
    result = learn_edge_ratios(ROUTE, taken, np.array([[0.0, 0.0, 0.0, 0.0]] * 2))
    assert result == {("source", "route"): 0.0, ("route", "big"): 1.0, ("route", "small"): 1.0}
    unknown = learn_edge_ratios(ROUTE, np.array([[10.0, 9.0, np.nan, np.nan]]), np.full((1, 4), np.nan))
    assert unknown[("source", "route")] == pytest.approx(0.9)
    assert math.isnan(unknown["route", "big"])


def test_a_model_of_the_release_before_knows_the_only_edge_of_an_operator() -> None:
    """It has selectivities and no edges."""
    result = complete_ratios(ROUTE, {}, {"source": 1.0, "route": 1.0, "big": 1.0, "small": 1.0})
    assert result["source", "route"] == 1.0
    assert math.isnan(result["route", "big"])
    with pytest.raises(GraphError, match="no selectivity for 'route'"):
        complete_ratios(ROUTE, {}, {"source": 1.0})
