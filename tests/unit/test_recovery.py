"""Learnt downtimes: robust to outliers, borrowed from the fleet where events are few, and never their own witness."""

import numpy as np
import pytest

from models.recovery.recovery_model import DOWNTIME_PRIOR_LOG_SD, _medians, typical_duration

ONE_CLUSTER = np.zeros(3, np.int64)


def test_without_events_the_prior_stands() -> None:
    result = typical_duration(np.zeros(0), np.zeros(0, np.int64), ONE_CLUSTER, 40.0)
    np.testing.assert_allclose(result.centre_s, 40.0)
    np.testing.assert_allclose(result.sd_s, 40.0 * DOWNTIME_PRIOR_LOG_SD * np.sqrt(1.5))


def test_no_jobs_at_all() -> None:
    result = typical_duration(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), 40.0)
    assert result.centre_s.shape == result.sd_s.shape == (0,)


def test_many_events_win_over_the_prior_and_an_outlier_moves_nothing() -> None:
    seconds = np.array([20.0, 21, 19, 20, 20, 22, 18, 20, 20, 5000])
    job = np.zeros(10, np.int64)
    result = typical_duration(seconds, job, ONE_CLUSTER, 90.0)
    clean = typical_duration(np.where(seconds > 100, 20.0, seconds), job, ONE_CLUSTER, 90.0)
    assert result.centre_s[0] == pytest.approx(20.0, rel=0.1)
    assert result.centre_s[0] == pytest.approx(clean.centre_s[0], rel=0.02)
    assert result.sd_s[0] < 6.0


def test_a_job_without_events_borrows_from_its_own_cluster() -> None:
    """Cluster 0 takes 10 s, cluster 1 takes 100 s; jobs 1 and 3 were never seen."""
    random = np.random.default_rng(0)
    job = np.repeat([0, 2], 40)
    seconds = np.where(job == 0, 10.0, 100.0) * np.exp(0.1 * random.standard_normal(80))
    result = typical_duration(seconds, job, np.array([0, 0, 1, 1]), 40.0)
    np.testing.assert_allclose(result.centre_s, [10, 10, 100, 100], rtol=0.2)
    assert result.sd_s[1] > result.sd_s[0] * 1.1  # less is known about a job never seen


def test_medians_equal_brute_force() -> None:
    random = np.random.default_rng(1)
    for size in (1, 2, 3, 7, 20):
        x, group = random.standard_normal(size), random.integers(0, 3, size)
        median, count = _medians(x, group, 4)
        for g in range(4):
            assert count[g] == (group == g).sum()
            assert median[g] == pytest.approx(np.median(x[group == g]) if count[g] else 0.0)
