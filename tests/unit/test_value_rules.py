"""The value rules, one by one: what breaks each, what just does not, and for which metrics it holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.observing.value_rules import (
    AGGREGATIONS,
    NO_RULE,
    SHARE_LIMIT_MS,
    SUBTASK_AGGREGATIONS,
    VALUE_RULES,
    MetricScope,
    MetricValues,
    find_broken_rules,
    is_time,
    is_time_share,
    is_watermark,
)

MAX_VALUE = 1e15
NAN = float("nan")
NOT_GIVEN, NO_NUMBER = object(), object()


def values_of(value: object, *, is_share: bool) -> MetricValues:
    """Return one metric that has the value in every aggregation."""
    given, is_number = value is not NOT_GIVEN, isinstance(value, float)
    shape = (len(AGGREGATIONS), 1)
    return MetricValues(
        is_share=np.array([is_share]),
        is_time=np.array([is_share]),
        is_watermark=np.array([False]),
        is_given=np.full(shape, given),
        is_number=np.full(shape, is_number),
        number=np.full(shape, value if is_number else NAN),
    )


def reasons(value: object, *, is_share: bool) -> dict[str, str | None]:
    """Return the reason by aggregation."""
    result = find_broken_rules(values_of(value, is_share=is_share), MAX_VALUE)[:, 0]
    texts = [None if place == NO_RULE else VALUE_RULES[place].reason for place in result]
    return dict(zip(AGGREGATIONS, texts, strict=True))


def in_all(reason: str | None) -> dict[str, str | None]:
    return dict.fromkeys(AGGREGATIONS, reason)


@pytest.mark.parametrize("is_share", [False, True])
def test_wrong_type(is_share):
    assert reasons(NO_NUMBER, is_share=is_share) == in_all("wrong_type")
    assert reasons(NOT_GIVEN, is_share=is_share) == in_all(None)
    assert reasons(1.0, is_share=is_share) == in_all(None)


def test_value_nan_is_a_fault_but_of_a_time_share():
    assert reasons(NAN, is_share=False) == in_all("value_nan")
    assert reasons(NAN, is_share=True) == in_all(None)


@pytest.mark.parametrize("is_share", [False, True])
def test_value_negative(is_share):
    assert reasons(-1e-9, is_share=is_share) == in_all("value_negative")
    assert reasons(-np.inf, is_share=is_share) == in_all("value_negative")
    assert reasons(-0.0, is_share=is_share) == in_all(None)
    assert reasons(0.0, is_share=is_share) == in_all(None)


def test_value_huge():
    assert reasons(np.nextafter(MAX_VALUE, np.inf), is_share=False) == in_all("value_huge")
    assert reasons(np.inf, is_share=False) == in_all("value_huge")
    assert reasons(MAX_VALUE, is_share=False) == in_all(None)
    assert reasons(np.inf, is_share=True) == in_all("value_huge")


def test_value_huge_of_the_time_share_of_a_subtask():
    above = np.nextafter(SHARE_LIMIT_MS, np.inf)
    huge = {name: "value_huge" if name in SUBTASK_AGGREGATIONS else None for name in AGGREGATIONS}
    assert (
        reasons(above, is_share=True) == huge == {**in_all(None), **dict.fromkeys(("min", "max", "avg"), "value_huge")}
    )
    assert reasons(SHARE_LIMIT_MS, is_share=True) == in_all(None) == reasons(1050.0, is_share=True)
    assert reasons(1050.5, is_share=True) == huge
    assert reasons(above, is_share=False) == in_all(None)


def test_every_rule_is_broken_by_a_value_of_its_scope_alone():
    """None of the rules is hidden by those before it, and each says what it holds for."""
    breaking = {0: NO_NUMBER, 1: NAN, 2: -1.0, 3: 2e15, 4: 2e3}
    assert sorted(breaking) == list(range(len(VALUE_RULES)))
    for place, value in breaking.items():
        for is_share in (False, True):
            result = find_broken_rules(values_of(value, is_share=is_share), MAX_VALUE)[:, 0]
            inside = {
                MetricScope.ALL: np.full(5, True),
                MetricScope.NO_WATERMARKS: np.full(5, True),
                MetricScope.OTHER_METRICS: np.full(5, not is_share),
                MetricScope.SUBTASK_SHARES: is_share & np.isin(AGGREGATIONS, SUBTASK_AGGREGATIONS),
            }[VALUE_RULES[place].scope]
            assert (result == np.where(inside, place, NO_RULE)).all(), (place, is_share)


def test_each_value_is_judged_on_its_own():
    values = MetricValues(
        is_share=np.array([False, True, False]),
        is_time=np.array([False, True, False]),
        is_watermark=np.zeros(3, bool),
        is_given=np.full((5, 3), True),
        is_number=np.full((5, 3), True),
        number=np.array([[1.0, 1.0, NAN], [-1.0, 1051.0, 1.0], [1.0, NAN, 1.0], [2e15, 5e3, 1.0], [1.0, 1.0, 1.0]]),
    )
    assert find_broken_rules(values, MAX_VALUE).tolist() == [
        [-1, -1, 1],
        [2, 4, -1],
        [-1, -1, -1],
        [3, -1, -1],
        [-1, -1, -1],
    ]
    assert np.argwhere(values.are_not_measured).tolist() == [[2, 1]]


@pytest.mark.parametrize("name", ["busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond"])
def test_time_shares_are_known_by_their_last_name(name):
    assert is_time_share(name)
    assert is_time_share(f"Source__a.b.{name}")
    assert not is_time_share(f"{name}.x")
    assert not is_time_share(f"x{name}")


def test_other_metrics_are_no_time_shares():
    for name in (None, "", "numRecordsIn"):
        assert not is_time_share(name)
        assert not is_time(name)
    assert not is_time_share("accumulateBusyTimeMs")
    assert is_time("accumulateBusyTimeMs")


def test_the_least_and_the_largest_watermark_are_no_faults():
    for value in (-(2.0**63), 2.0**63):
        one = values_of(value, is_share=False)
        assert (find_broken_rules(one, MAX_VALUE) != NO_RULE).all()
        assert (find_broken_rules(replace(one, is_watermark=np.array([True])), MAX_VALUE) == NO_RULE).all()
    assert is_watermark("currentInputWatermark")
    assert not is_watermark("map.currentInputWatermark")  # of an operator in a chain
