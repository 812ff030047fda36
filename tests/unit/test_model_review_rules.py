"""What trainings keep to of what persons say of models: the rules of tags and aliases."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.training.model_review import (
    PINNED_TAG,
    PROMOTED_TAG,
    REJECTED_TAG,
    VERSION_TAG,
    ReviewedVersion,
    ReviewOrders,
    decide_promotion,
    drop_impossible,
    rank_usable,
    read_names,
    read_review,
    write_names,
)

ORDERS = ("eu", "orders")


def version(number: int, rejected: str = "", pinned: str = "", *, was_champion: bool = True) -> ReviewedVersion:
    tags = {VERSION_TAG: f"v{number}", REJECTED_TAG: rejected, PINNED_TAG: pinned}
    return ReviewedVersion(number, tags | ({PROMOTED_TAG: "then"} if was_champion else {}))


FOREIGN = ReviewedVersion(9, {"made by": "somebody", REJECTED_TAG: "all"})
PLAIN = [version(1), version(2)]


def is_promoted(versions: list[ReviewedVersion], champion: int | None, pinned: int | None = None) -> bool:
    """Whether the next version that passes becomes champion, three nights in a row."""
    review = read_review(versions, champion, pinned)
    nights = [
        decide_promotion("passed", number, review, champion, is_unmoved=True, promotion="gate")[0]
        for number in (10, 11, 12)
    ]
    assert len(set(nights)) == 1
    return nights[0]


@pytest.mark.parametrize(
    ("versions", "champion", "pinned", "wanted"),
    [
        (PLAIN, 2, None, True),
        ([], None, None, True),
        ([version(1), version(2, "all")], 1, None, False),
        ([version(1, "all"), version(2)], 2, None, True),  # older than the champion: nothing comes of it
        ([version(1), version(2, "all"), version(3)], 3, None, True),  # somebody approved a later one
        ([version(1), version(2, "eu/orders")], 2, None, True),
        (PLAIN, 2, 2, False),
        ([version(1), version(2, pinned="all")], 2, None, False),
        (PLAIN, 1, None, False),  # somebody went back
        ([version(1), version(2, was_champion=False)], 1, None, True),  # a challenger that failed
        ([*PLAIN, FOREIGN], 2, None, True),
        (PLAIN, 2, 9, True),
    ],
)
def test_whether_a_training_may_change_the_champion(
    versions: list[ReviewedVersion], champion: int | None, pinned: int | None, wanted: bool
) -> None:
    assert is_promoted(versions, champion, pinned) is wanted


def test_a_version_is_promoted_by_the_gate_alone_and_only_where_it_was_compared_with_the_champion() -> None:
    review, rejected = ReviewOrders(), ReviewOrders(rejected=frozenset({5}))
    assert decide_promotion("first", 5, review, None, is_unmoved=True, promotion="gate") == (True, "")
    for verdict, kept, unmoved, promotion, why in (
        ("failed", review, True, "gate", "the gate's verdict is failed"),
        ("kept", review, True, "gate", "the gate's verdict is kept"),
        ("passed", rejected, True, "gate", "version 5 is rejected"),
        ("passed", review, False, "gate", "the champion is another one since"),
        ("passed", review, True, "manual", 'training.promotion = "manual"'),
    ):
        wanted, reported = decide_promotion(verdict, 5, kept, 4, is_unmoved=unmoved, promotion=promotion)
        assert (wanted, why in reported) == (False, True)


def test_plans_use_what_is_named_and_another_where_that_cannot_be_used() -> None:
    assert rank_usable(PLAIN, 2) == [2, 1]
    assert rank_usable(PLAIN, 1) == [1]
    assert rank_usable(PLAIN, 2, 1) == [1, 2]
    assert rank_usable([*PLAIN, FOREIGN], 9) == [2, 1]
    assert rank_usable([version(1), version(2, "all")], 2) == [1, 2]
    assert rank_usable([version(1, "all")], 1) == [1]  # there is no other
    assert rank_usable([version(1, was_champion=False), FOREIGN], 9) == []
    assert rank_usable(PLAIN, None) == []


def test_a_rejected_job_has_the_models_of_the_champion_before() -> None:
    versions = [version(1), version(2, was_champion=False), version(3, "eu/orders"), version(4, "eu/orders")]
    assert read_review(versions, 4).orders[ORDERS] == (1, "rejected in version 4")
    assert read_review(versions[2:], 4).orders[ORDERS] == (None, "rejected in version 4")
    pinned = [*versions, version(5, pinned="eu/orders")]
    assert read_review(pinned, 4).orders[ORDERS] == (5, "pinned to version 5")


def test_a_source_without_the_job_leaves_out_what_was_rejected_and_keeps_nothing_pinned() -> None:
    rejected = read_review([version(1), version(2, "eu/orders")], 2)
    assert drop_impossible(rejected, {1: []}).orders == {ORDERS: (None, "rejected in version 2")}
    pinned = drop_impossible(read_review([version(1, pinned="eu/orders")], 1), {1: []})
    assert (pinned.orders, len(pinned.problems)) == ({}, 1)
    assert drop_impossible(rejected, {1: [ORDERS]}) == rejected


@example(False, {("[", "0")})
@example(False, {("eu", "a,b")})
@given(st.booleans(), st.sets(st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="/ "), min_size=1),
                                        st.text(st.characters(codec="utf-8"), min_size=1).map(str.strip))))  # fmt: skip
def test_what_is_written_into_a_tag_is_read_from_it(is_whole: bool, jobs: set[tuple[str, str]]) -> None:
    jobs = {job for job in jobs if job[1] and job[0] == job[0].strip()}
    assert read_names(write_names(is_whole, jobs)) == (is_whole, sorted(jobs), [])


@pytest.mark.parametrize("value", ["[1, 2]", "[", "orders", "/", "eu/", '{"a": 1}', "[{}]"])
def test_what_names_no_job_is_handed_back(value: str) -> None:
    is_whole, jobs, others = read_names(value)
    assert (is_whole, jobs, len(others)) == (False, [], 1)
