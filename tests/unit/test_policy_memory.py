"""The one place where a policy's memory becomes text and comes back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from lab.policies.ds2.ds2_memory import ManagerState, PendingAction
from lab.policies.flink_autoscaler.autoscaler_memory import (
    AutoscalerMemory,
    DelayedRecommendation,
    DelayedScaleDown,
    RestartTime,
    Scaling,
)
from models.policies.memory import dump, load


class Phase(StrEnum):
    BIG = "big"
    SMALL = "small"


@dataclass(frozen=True, slots=True)
class Point:
    at: int
    rate_per_s: float
    expected_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Everything:
    phase: Phase = Phase.BIG
    seen: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    table: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    decisions: tuple[Mapping[str, int], ...] = ()
    best: Point | None = None
    name: str = ""
    weights: tuple[float, ...] = ()
    frozen: bool = False


NAMES = st.text(max_size=4)
COUNTS = st.integers(-(2**63), 2**63)
FLOATS = st.floats(allow_nan=False)
POINTS = st.builds(Point, COUNTS, FLOATS, st.none() | FLOATS)
MEMORIES = st.builds(
    Everything,
    st.sampled_from(Phase),
    st.dictionaries(NAMES, st.lists(POINTS, max_size=3).map(tuple), max_size=3),
    st.dictionaries(NAMES, st.dictionaries(NAMES, FLOATS, max_size=3), max_size=3),
    st.lists(st.dictionaries(NAMES, COUNTS, max_size=3), max_size=3).map(tuple),
    st.none() | POINTS,
    NAMES,
    st.lists(FLOATS, max_size=4).map(tuple),
    st.booleans(),
)


@given(MEMORIES)
def test_a_memory_comes_back_equal_and_as_the_same_text(memory: Everything) -> None:
    text = dump(memory)
    back = load(Everything, text)
    assert back == memory
    assert dump(back) == text
    assert isinstance(back.phase, Phase)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@given(st.lists(st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.5]), max_size=5).map(tuple))
def test_nan_and_infinity_survive(weights: tuple[float, ...]) -> None:
    back = load(Everything, dump(Everything(weights=weights)))
    assert [repr(weight) for weight in back.weights] == [repr(weight) for weight in weights]


@given(st.dictionaries(NAMES, COUNTS, min_size=2, max_size=5), st.randoms())
def test_the_order_of_a_mapping_does_not_show(counts: dict[str, int], shuffle: object) -> None:
    names = list(counts)
    shuffle.shuffle(names)  # type: ignore[attr-defined]
    other = {name: counts[name] for name in names}
    assert dump(Everything(decisions=(counts,))) == dump(Everything(decisions=(other,)))


def test_equal_numbers_give_one_text() -> None:
    assert dump(Point(1, 2)) == dump(Point(1, 2.0)) == '{"at":1,"expected_per_s":null,"rate_per_s":2.0}'
    assert dump(Point(1, -0.0)) == dump(Point(1, 0.0))


def test_no_memory_is_a_memory() -> None:
    assert dump(None) == "null"
    assert load(type(None), dump(None)) is None


def test_texts_of_another_kind_are_refused_and_older_ones_are_not() -> None:
    with pytest.raises(ValidationError, match="at"):
        load(Point, "{}")
    with pytest.raises(ValidationError):
        load(Point, "null")
    with pytest.raises(ValidationError):
        load(Point, '{"at":1,"rate_per_s":1.0')
    assert load(Everything, '{"name":"a","a field of an older version":1}') == Everything(name="a")


def test_a_value_of_another_type_than_declared_is_refused() -> None:
    with pytest.raises(PydanticSerializationError):
        dump(Point("many", 1.0))  # type: ignore[arg-type]


def test_the_memories_of_ds2_and_of_the_flink_autoscaler_survive() -> None:
    ds2 = ManagerState(3.0, 1, ({"a": 2},), PendingAction({"a": 1}, {"a": 2}, None), ({"b": 1}, {"a": 3}), 2, 5e6, 7)
    assert load(ManagerState, dump(ds2)) == ds2
    rules = AutoscalerMemory(
        {"v": DelayedScaleDown(1.0, (DelayedRecommendation(1.0, 3, outside_bounds=True),))},
        {"v": (Scaling(1.0, 1, None, math.inf, math.inf), Scaling(2.0, 1, 2, 9.0, None))},
        (RestartTime(1.0, 2.0), RestartTime(3.0)),
    )
    assert load(AutoscalerMemory, dump(rules)) == rules
