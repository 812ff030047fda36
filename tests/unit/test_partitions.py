"""Partitions of a source: where they come from, and that every policy ends there."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from include.domain.graph import JobGraph, Operator
from include.settings.clusters import Cluster
from models.scheduling.need import upper_limits
from spark_jobs.plan_inputs.job_state import graph_of, limited_graph_of

VERTEX = "a" * 32
OPERATORS = [
    {"operator": "Source: orders", "vertex_id": VERTEX, "max_parallelism": 128, "partitions": 6},
    {
        "operator": "map",
        "vertex_id": "b" * 32,
        "upstream": ["Source: orders"],
        "max_parallelism": 64,
        "ship_strategies": ["HASH"],
    },
]


def test_the_broker_tells_and_the_settings_win() -> None:
    assert upper_limits(graph_of(OPERATORS), 32).tolist() == [6, 32]
    for key in ("team-a/orders/Source: orders", f"team-a/orders/{VERTEX}"):
        graph = limited_graph_of(OPERATORS, Cluster(partitions={key: 4}), "team-a/orders")
        assert upper_limits(graph, 32).tolist() == [4, 32]
        other = limited_graph_of(OPERATORS, Cluster(partitions={key: 4}), "team-a")
        assert upper_limits(other, 32).tolist() == [6, 32]


def test_an_operator_behind_is_not_limited_by_partitions() -> None:
    graph = JobGraph((Operator("source"), Operator("map", ("source",))))
    assert graph.with_partitions({"map": 2}) == graph
    assert graph.with_partitions({"source": 2}).operators[0].most_subtasks == 2


def test_edges_by_key_make_an_operator_keyed() -> None:
    assert [one.is_keyed for one in graph_of(OPERATORS).operators] == [False, True]


@pytest.mark.parametrize("given", [{"orders": 4}, {"orders/Source": 0}, {"orders/": 2}])
def test_what_names_no_source_or_no_number_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Cluster(partitions=given)
