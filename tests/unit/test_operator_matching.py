"""Which operator of a redeployed job is which of the job before."""

from __future__ import annotations

import pytest

from include.domain.operator_matching import PlacedOperator, follow_names, follow_operators, match_operators


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


def test_an_id_wins_over_a_name_that_passed_to_another_operator():
    before = [operator("Source: bids[1]", "a", 0), operator("Calc[2]", "b", 1, "Source: bids[1]")]
    before.append(operator("Calc[3]", "c", 2, "Calc[2]"))
    after = [operator("Source: bids[2]", "a", 0), operator("Calc[3]", "b", 1, "Source: bids[2]")]
    after.append(operator("Calc[4]", "c", 2, "Calc[3]"))
    assert match_operators(before, after) == {
        "Source: bids[1]": "Source: bids[2]",
        "Calc[2]": "Calc[3]",
        "Calc[3]": "Calc[4]",
    }


def test_a_number_of_the_planner_is_no_part_of_a_name():
    before = [operator("Source: bids[1]", "a", 0), operator("Calc[2]", "b", 1, "Source: bids[1]")]
    before.append(operator("Calc[3]", "c", 2, "Calc[2]"))
    after = [operator("Source: bids[2]", "x", 0), operator("Calc[3]", "y", 1, "Source: bids[2]")]
    after += [operator("Calc[4]", "z", 2, "Calc[3]"), operator("Sink: out[5]", "w", 3, "Calc[4]")]
    assert match_operators(before, after) == {"Source: bids[1]": "Source: bids[2]"}


def test_an_unknown_id_matches_none():
    assert match_operators([operator("a", "", 0)], [operator("b", "", 0), operator("c", "1", 1, "b")]) == {}


def test_names_are_followed_over_several_deployments():
    first = [operator("Source: a", "1", 0), operator("old sink", "2", 1, "Source: a")]
    second = [operator("Source: b", "1", 0)]
    third = [operator("Source: c", "1", 0), operator("new sink", "9", 1, "Source: c")]
    assert follow_operators([first, second, third]) == {
        ("Source: a", "1"): "Source: c",
        ("old sink", "2"): None,
        ("Source: b", "1"): "Source: c",
        ("Source: c", "1"): "Source: c",
        ("new sink", "9"): "new sink",
    }


def test_a_name_that_two_operators_had_is_followed_by_id():
    first = [operator("Calc[1]", "a", 0), operator("Calc[2]", "b", 1, "Calc[1]")]
    second = [operator("Calc[2]", "a", 0), operator("Calc[3]", "b", 1, "Calc[2]")]
    assert follow_operators([first, second]) == {
        ("Calc[1]", "a"): "Calc[2]",
        ("Calc[2]", "b"): "Calc[3]",
        ("Calc[2]", "a"): "Calc[2]",
        ("Calc[3]", "b"): "Calc[3]",
    }
    assert follow_names(["Calc[1]", "Calc[2]"], [first, second]) == {"Calc[1]": "Calc[2]", "Calc[2]": "Calc[3]"}
    assert follow_names(["Calc[2]", "Calc[3]"], [first, second]) == {"Calc[2]": "Calc[2]", "Calc[3]": "Calc[3]"}


def test_names_that_no_version_has_stay():
    assert follow_names(["map"], [[operator("Source: a", "1", 0)]]) == {"map": "map"}


def test_a_job_that_was_rolled_back_has_its_old_names():
    first, second = [operator("Source: a", "1", 0)], [operator("Source: b", "1", 0)]
    followed = follow_operators([first, second, first])
    assert followed == {("Source: a", "1"): "Source: a", ("Source: b", "1"): "Source: a"}


def test_no_deployment_has_no_names():
    assert follow_operators([]) == {}
