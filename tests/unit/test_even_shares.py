"""Divisors of partitions and key groups, where they cost no slot."""

from __future__ import annotations

import numpy as np

from include.domain.graph import JobGraph, Operator
from models.scheduling.even_shares import align_shares

GRAPH = JobGraph(
    (
        Operator("source", partitions=12),
        Operator("map", ("source",)),
        Operator("count", ("map",), max_parallelism=128, is_keyed=True),
    )
)

NOTHING = np.zeros(3, np.int64)


def test_operators_rise_to_the_next_divisor_within_the_slots_of_their_configuration() -> None:
    result = align_shares(GRAPH, np.array([[5, 9, 3], [5, 5, 5], [5, 7, 7], [7, 2, 10], [12, 16, 16]]), NOTHING)
    assert result.tolist() == [[6, 9, 4], [5, 5, 5], [6, 7, 7], [7, 2, 10], [12, 16, 16]]


def test_what_is_not_known_is_left() -> None:
    plain = JobGraph((Operator("source"), Operator("map", ("source",))))
    assert align_shares(plain, np.array([[5, 7]]), NOTHING[:2]).tolist() == [[5, 7]]


def test_beyond_its_partitions_a_source_is_left() -> None:
    assert align_shares(GRAPH, np.array([[13, 20, 1]]), NOTHING).tolist() == [[13, 20, 1]]


def test_an_operator_that_keeps_its_parallelism_is_left() -> None:
    assert align_shares(GRAPH, np.array([[5, 9, 3]]), np.array([5, 4, 1])).tolist() == [[5, 9, 4]]
