"""Capacity curves, fitted to points of many operators at once."""

import numpy as np
import pytest

from models.capacity.capacity_samples import pack
from models.capacity.curves import Curves, fit_curves

GRID = np.arange(1.0, 33)


def saturating(parallelism: np.ndarray, a: float) -> np.ndarray:
    return 1000.0 * parallelism / (1 + a * (parallelism - 1))


def test_one_observation_is_a_line() -> None:
    curves = fit_curves(pack([0], [4], [5], [400.0], [40.0]), np.array([8.0]), 32)
    assert np.isnan(curves.length_scale[0])
    assert curves.slope_per_s[0] == pytest.approx(100.0)
    np.testing.assert_allclose(curves.mean_per_s[0], 100 * GRID)


def test_one_that_was_seen_once_changes_nothing_for_others_of_its_batch() -> None:
    """It is a line, for which no length scale is searched."""
    once, twice = pack([0], [4], [5], [400.0], [40.0]), pack([0, 0], [2, 8], [5, 5], [200.0, 700.0], [40.0, 90.0])
    both = pack([0, 1, 1], [4, 2, 8], [5, 5, 5], [400.0, 200.0, 700.0], [40.0, 40.0, 90.0])
    largest = np.array([8.0, 8.0])
    together = fit_curves(both, largest, 32)
    for row, alone in enumerate((once, twice)):
        apart = fit_curves(alone, largest[:1], 32)
        for name in Curves.__slots__:
            np.testing.assert_array_equal(getattr(together, name)[row], getattr(apart, name)[0])


def test_curves_cover_the_truth_between_what_was_seen() -> None:
    """Operators seen at 2..12 only: four in five true capacities between lie within 1.64 sd."""
    random = np.random.default_rng(2)
    operators, observed = 200, np.array([2, 3, 5, 8, 12])
    a = random.uniform(0.0, 0.06, operators)
    owner, at = np.repeat(np.arange(operators), 5), np.tile(observed, operators)
    mean = saturating(at, a[owner]) * (1 + 0.02 * random.standard_normal(len(at)))
    samples = pack(owner, at, np.full(len(at), 5), mean, 5 * (0.04 * mean) ** 2)
    curves = fit_curves(samples, np.full(operators, 12.0), 24)
    grid = np.broadcast_to(np.arange(1.0, 25), curves.mean_per_s.shape)
    truth = saturating(grid, a[:, None])
    inside = np.abs(curves.mean_per_s - truth) <= 1.64 * curves.sd_per_s
    assert inside[:, 1:12].mean() > 0.8
    relative = np.abs(curves.mean_per_s - truth) / truth
    assert relative[:, 1:12].mean() < 0.03
    assert not curves.at_bound.all()
