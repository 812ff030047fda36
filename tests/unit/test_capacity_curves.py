"""Capacity curves: what the fleet teaches about extrapolation."""

import numpy as np
import pytest

from models.capacity.capacity_samples import pack
from models.capacity.curves import SCALING_ERROR_PRIOR, fit_curves, scaling_error, widen

GRID = np.arange(1.0, 33)


def saturating(parallelism: np.ndarray, a: float) -> np.ndarray:
    return 1000.0 * parallelism / (1 + a * (parallelism - 1))


def test_one_observation_is_a_line_whose_uncertainty_grows_with_distance() -> None:
    curves = fit_curves(pack([0], [4], [5], [400.0], [40.0]), np.array([8.0]), 32)
    assert np.isnan(curves.length_scale[0])
    assert curves.slope_per_s[0] == pytest.approx(100.0)
    np.testing.assert_allclose(curves.mean_per_s[0], 100 * GRID)
    four = np.full(32, 4.0)
    sd = widen(curves.mean_per_s[0], curves.sd_per_s[0], GRID, lowest=four, highest=four, error=0.3)
    share = sd / curves.mean_per_s[0]
    assert share[3] == share.min()
    assert (np.diff(share[3:]) > 0).all()
    assert (np.diff(share[:4]) < 0).all()
    assert share[31] > 0.3


def test_perfect_scaling_lowers_the_extrapolation_error_and_saturation_raises_it() -> None:
    owner = np.repeat(np.arange(20), 5)
    observed = np.tile([1, 2, 4, 8, 16], 20)
    noise = np.full(100, 0.001)
    linear = scaling_error(owner, observed, 1000.0 * observed, noise)
    bent = scaling_error(owner, observed, saturating(observed, 0.05), noise)
    assert linear < 0.1
    assert bent == pytest.approx(np.log((1 + 0.05 * 7) / (1 + 0.05 * 15)) / -np.log(2), rel=0.1)
    single = np.arange(3)
    assert scaling_error(single, single + 1, 5.0 * single + 1, noise[:3]) == pytest.approx(SCALING_ERROR_PRIOR)
    none = scaling_error(np.zeros(1, np.int64), np.array([4]), np.array([10.0]), noise[:1])
    assert none == pytest.approx(SCALING_ERROR_PRIOR)


def test_noise_alone_is_not_taken_for_bad_scaling() -> None:
    random = np.random.default_rng(0)
    owner, observed = np.repeat(np.arange(400), 2), np.tile([10, 12], 400)
    noisy = 1000.0 * observed * (1 + 0.05 * random.standard_normal(800))
    assert scaling_error(owner, observed, noisy, np.full(800, 0.05)) < 0.15
    assert scaling_error(owner, observed, noisy, np.zeros(800)) > 0.3


def test_curves_cover_the_truth_between_and_beyond_what_was_seen() -> None:
    """Operators seen at 2..12 only: nearly nine in ten true capacities up to p = 24 lie within 1.64 sd."""
    random = np.random.default_rng(2)
    operators, observed = 200, np.array([2, 3, 5, 8, 12])
    a = random.uniform(0.0, 0.06, operators)
    owner, at = np.repeat(np.arange(operators), 5), np.tile(observed, operators)
    mean = saturating(at, a[owner]) * (1 + 0.02 * random.standard_normal(len(at)))
    samples = pack(owner, at, np.full(len(at), 5), mean, 5 * (0.04 * mean) ** 2)
    curves = fit_curves(samples, np.full(operators, 12.0), 24)
    error = scaling_error(owner, at, mean, np.repeat(curves.noise_share, 5) / np.sqrt(5))
    grid = np.broadcast_to(np.arange(1.0, 25), curves.mean_per_s.shape)
    lowest, highest = np.full_like(grid, 2.0), np.full_like(grid, 12.0)
    sd = widen(curves.mean_per_s, curves.sd_per_s, grid, lowest=lowest, highest=highest, error=error)
    truth = saturating(grid, a[:, None])
    inside = np.abs(curves.mean_per_s - truth) <= 1.64 * sd
    assert inside[:, 1:12].mean() > 0.8
    assert inside[:, 12:].mean() > 0.85
    relative = np.abs(curves.mean_per_s - truth) / truth
    assert relative[:, 1:12].mean() < 0.03
    assert not curves.at_bound.all()
