"""Latency over utilisation: monotone, robust, few knots."""

import numpy as np

from models.recovery.latency import BINS, fit_windows, latency_errors, utilisation_bin


def windows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A queue: 20 ms / (1 - u), with noise and 2% wild outliers."""
    random = np.random.default_rng(seed)
    utilisation = random.uniform(0.1, 0.97, n)
    latency = 20 / (1 - utilisation) * np.exp(0.2 * random.standard_normal(n))
    return utilisation, np.where(random.random(n) < 0.02, 60e3, latency)


def test_curve_is_monotone_has_few_knots_and_follows_the_queue() -> None:
    model = fit_windows(*windows(4000))
    assert len(model.knots) <= BINS
    assert (np.diff(model.latency_at_knots_ms) >= 0).all()
    at = np.array([0.2, 0.5, 0.8, 0.9])
    np.testing.assert_allclose(model.latency_ms(at), 20 / (1 - at), rtol=0.12)


def test_held_back_error_is_near_the_noise() -> None:
    model = fit_windows(*windows(4000))
    utilisation, latency = windows(1000, seed=1)
    normal = latency < 10e3
    assert latency_errors(model.latency_ms(utilisation), latency)[normal].mean() < 0.2


def test_medians_of_bins_are_exact() -> None:
    model = fit_windows(np.array([0.5, 0.5, 0.5, 0.51, 0.9]), np.array([10.0, 30.0, 20.0, 1000.0, 40.0]))
    np.testing.assert_allclose(model.latency_ms([0.5, 0.9]), [25.0, 40.0])
    assert model.latency_ms(0.0) == 25.0


def test_nothing_seen_stays_unknown_and_the_fleet_helps_out() -> None:
    assert len(fit_windows(np.zeros(0), np.zeros(0)).knots) == 0
    assert len(fit_windows(np.zeros(0), np.zeros(0)).knots) == 0
    pooled = fit_windows(np.array([0.2, 0.2, 0.9]), np.array([10.0, 20.0, 90.0]))
    np.testing.assert_allclose(pooled.latency_ms([0.2, 0.9]), [15.0, 90.0])


def test_overload_falls_into_the_last_bin() -> None:
    assert utilisation_bin(np.array([0.0, 0.999, 1.0, 1.05])).tolist() == [0, BINS - 1, BINS - 1, BINS - 1]
