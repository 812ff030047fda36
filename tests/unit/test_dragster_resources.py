"""Dragster's decision over tasks, cores and memory together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.policies.dragster.dragster_options import Bonus
from models.policies.dragster.resource_vectors import (
    Candidates,
    Observed,
    PodSize,
    VectorKernel,
    choose_vector,
    list_candidates,
    project_on_price,
)

SIZES = (PodSize(1.0, 2.0, 0.18), PodSize(2.0, 4.0, 0.36), PodSize(1.0, 8.0, 0.30))
GRID = list_candidates(6, SIZES)


def capacity(vectors: np.ndarray) -> np.ndarray:
    """An operator whose state fits into 4 GiB: with less memory it does half."""
    tasks, cores, memory = vectors.T
    return 0.1 * tasks * cores * np.where(memory >= 4.0, 1.0, 0.5) / (1 + 0.01 * (tasks - 1))


def test_candidates_are_all_pairs_with_their_prices() -> None:
    assert GRID.vectors.shape == (18, 3)
    two_large = np.flatnonzero((GRID.vectors == [2.0, 2.0, 4.0]).all(axis=1))[0]
    assert GRID.price_per_h[two_large] == pytest.approx(0.72)
    with pytest.raises(ValueError, match="size"):
        list_candidates(3, ())


def test_it_settles_on_a_configuration_of_three_dimensions_that_has_the_capacity() -> None:
    """From one small task; exploration comes first and ever more rarely, as the variances fall."""
    draws, recorded, at, target = np.random.default_rng(2), [], 0, 0.62
    values: list[float] = []
    for slot in range(1, 31):
        recorded.append(at)
        true = float(capacity(GRID.vectors[[at]])[0])
        values.append(true * (1 + 0.02 * draws.standard_normal()))
        observed = Observed(GRID.vectors[recorded], np.array(values))
        kernel = VectorKernel(deviation=0.15)
        at = choose_vector(GRID, observed, target, slot, kernel=kernel, bonus=Bonus.VARIANCE, delta=2.0)
    late = np.array(recorded[10:])
    usual = int(np.bincount(late).argmax())
    nearest = np.abs(capacity(GRID.vectors) - target).min()
    assert np.abs(capacity(GRID.vectors[[usual]]) - target)[0] <= nearest + 0.05
    assert len(set(recorded)) < len(GRID.vectors)  # it need not try them all


def test_of_equally_good_configurations_the_cheapest_is_taken() -> None:
    twice = Candidates(np.array([[2.0, 1.0, 2.0], [2.0, 1.0, 2.0], [1.0, 1.0, 2.0]]), np.array([5.0, 3.0, 1.0]))
    observed = Observed(np.array([[1.0, 1.0, 2.0]]), np.array([0.2]))
    kernel = VectorKernel(deviation=1e-6)
    assert choose_vector(twice, observed, 0.4, 1, kernel=kernel, bonus=Bonus.VARIANCE, delta=2.0) == 1


@given(
    first=st.lists(st.floats(0.01, 1.5), min_size=6, max_size=6),
    second=st.lists(st.floats(0.01, 1.5), min_size=6, max_size=6),
    budget=st.floats(0.4, 4.0),
)
@settings(deadline=None, max_examples=50)
def test_a_price_buys_the_best_share_of_all_configurations(first, second, budget) -> None:
    small = list_candidates(2, SIZES)
    grids, needed = {"a": small, "b": small}, {"a": 1.0, "b": 1.0}
    values = {"a": np.array(first), "b": np.array(second)}
    result = project_on_price(grids, values, needed, budget)

    def share(rows: dict[str, int]) -> float:
        return min(1.0, *(float(values[name][at]) / needed[name] for name, at in rows.items()))

    every = [dict(zip("ab", rows, strict=True)) for rows in itertools.product(range(6), repeat=2)]
    payable = [rows for rows in every if sum(small.price_per_h[at] for at in rows.values()) <= budget]
    if payable:
        assert share(result) == pytest.approx(max(map(share, payable)))
        assert sum(small.price_per_h[at] for at in result.values()) <= budget
    else:
        assert set(result.values()) == {int(small.price_per_h.argmin())}
