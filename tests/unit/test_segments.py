"""Dividing a horizon into configurations: covered, long enough, worth their rescales, and the cheapest of all."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.policies.need_vector.division import count_held_bins, divide
from lab.scheduling.segments import Segment

BIN_S = 600.0
LIMITS = np.array([20, 20])


def split(
    slots: list[int], current: int, *, min_step_s: float = 3600, cost: float = 3600, limit: int = 20
) -> list[tuple[int, int, int, bool]]:
    """Divide for one operator; returns (begin, end, parallelism, held)."""
    result = divide(
        np.array([slots]),
        np.array([current]),
        np.array([limit]),
        bin_s=BIN_S,
        min_step_s=min_step_s,
        rescale_cost_slot_s=cost,
    )
    return [(part.begin, part.end, int(part.parallelism[0]), part.held) for part in result]


def test_a_running_configuration_that_covers_all_is_held() -> None:
    assert split([3] * 20, 3) == [(0, 20, 3, True)]


def test_a_rise_begins_where_it_is_needed() -> None:
    assert split([3] * 10 + [9] * 20, 3) == [(0, 10, 3, True), (10, 30, 9, False)]


def test_a_short_peak_is_kept_for_the_minimum_and_its_fall_waits() -> None:
    assert split([3] * 10 + [9] + [3] * 20, 3) == [(0, 10, 3, True), (10, 16, 9, False), (16, 31, 3, False)]


def test_a_short_trough_is_filled() -> None:
    assert split([9] * 10 + [3] * 5 + [9] * 10, 9) == [(0, 25, 9, True)]


def test_a_trough_that_does_not_pay_two_rescales_is_filled() -> None:
    trough = [9] * 10 + [8] * 11 + [9] * 10  # 11 bins x 600 s x 1 slot = 6,600 slot-seconds; two rescales cost 7,200
    assert split(trough, 9) == [(0, 31, 9, True)]
    assert len(split([9] * 10 + [8] * 13 + [9] * 10, 9)) == 3  # 7,800 pay


def test_a_ramp_is_climbed_in_steps_that_last() -> None:
    result = split(list(range(1, 21)), 1, cost=0)
    assert all(end - begin >= 6 for begin, end, _, held in result[:-1] if not held)
    assert result[-1][2] == 20


def test_a_configuration_over_the_limit_may_not_go_on() -> None:
    assert split([5] * 3, 9, limit=5) == [(0, 3, 5, False)]
    assert count_held_bins(np.array([[5, 5]]), np.array([9]), np.array([5])) == 0


def test_equal_slots_never_cost_a_rescale_even_when_rescales_are_free() -> None:
    need = np.array([[4, 2, 4], [1, 4, 1]])
    result = divide(need, np.array([1, 1]), LIMITS, bin_s=BIN_S, min_step_s=0, rescale_cost_slot_s=0)
    assert [(part.begin, part.end, part.parallelism.tolist()) for part in result] == [(0, 3, [4, 4])]


def price(parts: list[tuple[int, int, int, bool]], cost: float) -> float:
    rescales = sum(not held for *_, held in parts)
    return sum(BIN_S * (end - begin) * slots for begin, end, slots, _ in parts) + cost * rescales


def cheapest(slots: list[int], current: int, shortest: int, cost: float) -> float:
    """Try every division: any set of ends, the first part held or not."""
    bins, best = len(slots), float("inf")
    for count in range(bins):
        for inner in combinations(range(1, bins), count):
            edges = [0, *inner, bins]
            parts = [(a, b, max(slots[a:b])) for a, b in pairwise(edges)]
            for held in (False, True):
                if held and parts[0][2] > current:
                    continue
                long = all(b - a >= shortest or b == bins for a, b, _ in parts[int(held) :])
                reported = [(a, b, current if held and a == 0 else p, held and a == 0) for a, b, p in parts]
                if long:
                    best = min(best, price(reported, cost))
    return best


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=9),
    st.integers(1, 6),
    st.integers(0, 4),
    st.sampled_from([1.0, 600.0, 1800.0, 6000.0]),
)
@settings(max_examples=120, deadline=None)
def test_no_other_division_is_cheaper(slots: list[int], current: int, shortest: int, cost: float) -> None:
    result = split(slots, current, min_step_s=shortest * BIN_S, cost=cost)
    assert price(result, cost) == pytest.approx(cheapest(slots, current, max(shortest, 1), cost))


needs = st.integers(1, 40).flatmap(
    lambda bins: st.lists(st.lists(st.integers(1, 20), min_size=bins, max_size=bins), min_size=2, max_size=2)
)


@given(needs, st.tuples(st.integers(1, 25), st.integers(1, 25)), st.integers(0, 10), st.floats(0, 20_000))
@settings(deadline=None)
def test_every_division_covers_lasts_pays_and_is_found_again(
    rows: list[list[int]], current: tuple[int, int], shortest: int, cost: float
) -> None:
    need, running = np.array(rows), np.array(current)
    options = {"bin_s": BIN_S, "min_step_s": shortest * BIN_S, "rescale_cost_slot_s": cost}
    result = divide(need, running, LIMITS, **options)
    assert _same(result, divide(need, running, LIMITS, **options))
    assert [part.begin for part in result] == [0, *(part.end for part in result[:-1])]
    assert result[-1].end == need.shape[1]
    for part in result:
        assert (part.parallelism[:, None] >= need[:, part.begin : part.end]).all()
        assert (part.parallelism <= LIMITS).all()
        assert part.held or part.end - part.begin >= shortest or part is result[-1]
    for left, right in pairwise(result):
        if not left.held:
            assert _extra_when_merged(left, right) >= cost - 1e-6


def _same(left: list[Segment], right: list[Segment]) -> bool:
    return all(
        (a.begin, a.end, a.parallelism.tolist(), a.held) == (b.begin, b.end, b.parallelism.tolist(), b.held)
        for a, b in zip(left, right, strict=True)
    )


def _extra_when_merged(left: Segment, right: Segment) -> float:
    highest = max(left.parallelism.max(), right.parallelism.max())
    return float(sum((highest - part.parallelism.max()) * (part.end - part.begin) * BIN_S for part in (left, right)))
