"""Which operator of a redeployed job is which of the job before."""

from __future__ import annotations

import pytest

from include.domain.operator_matching import PlacedOperator, follow_operators, match_operators


def operator(name: str, vertex_id: str, position: int, *upstream: str) -> PlacedOperator:
    return PlacedOperator(name, vertex_id, position, upstream)


BEFORE = [operator("Source: orders", "a", 0), operator("enrich -> filter", "b", 1, "Source: orders")]


@pytest.mark.parametrize(
    ("after", "matched"),
    [
        (BEFORE, {"Source: orders": "Source: orders", "enrich -> filter": "enrich -> filter"}),
        (  # the chain has another operator, its uid is the same
            [operator("Source: orders -> map", "a", 0), operator("lookup", "b", 1, "Source: orders -> map")],
            {"Source: orders": "Source: orders -> map", "enrich -> filter": "lookup"},
        ),
        (  # without a uid the id changes, the head of the chain does not
            [operator("Source: orders -> map", "x", 0), operator("enrich", "y", 1, "Source: orders -> map")],
            {"Source: orders": "Source: orders -> map", "enrich -> filter": "enrich"},
        ),
        (  # nothing is left but the shape of the graph
            [operator("Source: bids", "x", 0), operator("join", "y", 1, "Source: bids")],
            {"Source: orders": "Source: bids", "enrich -> filter": "join"},
        ),
        (  # another shape: what became of the source cannot be told
            [operator("Source: bids", "x", 0), operator("Source: asks", "z", 1), operator("enrich", "b", 2)],
            {"enrich -> filter": "enrich"},
        ),
    ],
)
def test_an_operator_is_known_by_name_id_chain_or_place(after, matched):
    assert match_operators(BEFORE, after) == matched


def test_two_of_one_head_are_not_mixed_up():
    before = [operator("Source: a -> x", "1", 0), operator("Source: a -> y", "2", 1)]
    after = [operator("Source: a -> p", "3", 0), operator("Source: a -> q", "4", 1), operator("sink", "5", 2)]
    assert match_operators(before, after) == {}


def test_names_are_followed_over_several_deployments():
    first = [operator("Source: a", "1", 0), operator("old sink", "2", 1, "Source: a")]
    second = [operator("Source: b", "1", 0)]
    third = [operator("Source: c", "1", 0), operator("new sink", "9", 1, "Source: c")]
    assert follow_operators([first, second, third]) == {
        "Source: a": "Source: c",
        "old sink": None,
        "Source: b": "Source: c",
        "Source: c": "Source: c",
        "new sink": "new sink",
    }


def test_a_job_that_was_rolled_back_has_its_old_names():
    first, second = [operator("Source: a", "1", 0)], [operator("Source: b", "1", 0)]
    assert follow_operators([first, second, first]) == {"Source: a": "Source: a", "Source: b": "Source: a"}


def test_no_deployment_has_no_names():
    assert follow_operators([]) == {}
