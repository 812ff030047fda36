"""Downtimes by the size of the state, each expected from the events before it alone."""

import numpy as np
import pytest

from models.bundle.state_factor import MOST_FACTOR, state_factor
from models.recovery.downtime import find_change_s, fit_downtimes


def events(count: int, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    state = random.uniform(1e9, 9e9, count)
    return (20.0 + state / 2e8) * np.exp(noise * random.standard_normal(count)), state


def test_the_state_explains_downtimes() -> None:
    seconds, state = events(40)
    job = np.zeros(40, np.int64)
    result = fit_downtimes(seconds, state, job, 1, 40.0)
    blind = fit_downtimes(seconds, np.full(40, np.nan), job, 1, 40.0)
    late = slice(20, None)
    error = np.abs(result.before_s - seconds)[late] / seconds[late]
    assert error.mean() < 0.08
    assert error.mean() < 0.6 * (np.abs(blind.before_s - seconds)[late] / seconds[late]).mean()
    assert result.slope[0] == pytest.approx(0.55, abs=0.15)


def test_an_event_is_expected_from_earlier_ones_alone() -> None:
    seconds, state = events(12)
    job = np.array([0, 1] * 6)
    before = fit_downtimes(seconds, state, job, 2, 40.0).before_s
    for stop in range(1, 13):
        alone = fit_downtimes(seconds[:stop], state[:stop], job[:stop], 2, 40.0).before_s
        np.testing.assert_array_equal(alone, before[:stop])


def test_without_events_the_prior_stands_and_jobs_without_any_have_no_slope() -> None:
    result = fit_downtimes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), 3, 40.0)
    assert result.before_s.shape == (0,)
    assert (result.slope == 0).all()
    assert np.isnan(result.state_bytes).all()
    first = fit_downtimes(np.array([10.0]), np.array([1e9]), np.zeros(1, np.int64), 1, 40.0)
    assert first.before_s[0] == pytest.approx(40.0)


def test_an_unknown_or_strange_size_changes_little() -> None:
    slope = np.full(4, 0.5)
    factor = state_factor(slope, np.array([np.nan, 1e9, 1e15, 0.0]), np.array([1e9, 0.0, 1e9, 1e9]))
    np.testing.assert_allclose(factor, [1.0, 1.0, MOST_FACTOR, 0.5])


def test_a_job_unlike_all_others_is_believed_after_few_events() -> None:
    seconds = np.concatenate([np.full(20, 40.0), np.full(4, 0.5), [30.0, 30.0]])
    job = np.concatenate([np.arange(20) % 5, np.full(4, 5), np.full(2, 6)])
    before = fit_downtimes(seconds, np.full(26, np.nan), job, 7, 40.0).before_s
    assert before[20] == pytest.approx(40.0, rel=0.02)
    assert before[21:24].max() < 0.6
    assert 31.0 < before[25] < 39.0  # one that is a little quicker is still drawn towards the others


def test_rescales_of_a_job_tell_how_long_its_first_failure_takes() -> None:
    """Rescales take 40 s, of one job 10 s and of another 0.1 s; to be noticed a failure takes 20 s more."""
    rescales = np.concatenate([np.full(20, 40.0), np.full(8, 10.0), np.full(8, 0.1)])
    job = np.concatenate([np.arange(20) % 5, np.full(8, 5), np.full(8, 6)])
    failures, failed = np.array([60.0, 60, 60, 60, 30, 9]), np.array([0, 1, 2, 3, 5, 6])
    seconds, both = np.concatenate([rescales, failures]), np.concatenate([job, failed])
    is_failure = np.arange(len(seconds)) >= len(rescales)
    sizes = np.full(len(seconds), np.nan)
    change = find_change_s(seconds, sizes, both, 7, 40.0, is_other=is_failure)
    np.testing.assert_allclose(change, [0.0, 0.0, 0.0, 0.0, -30.0, -39.9], atol=0.6)
    before = fit_downtimes(failures, sizes[is_failure], failed, 7, 90.0, change_s=change).before_s
    blind = fit_downtimes(failures, sizes[is_failure], failed, 7, 90.0).before_s
    assert before[4] == pytest.approx(blind[4] - 30.0, abs=1.0)
    assert 60.0 / MOST_FACTOR < before[5] < blind[5] / 2  # the fleet's 67 s less 40
    other = find_change_s(np.where(is_failure, 7.0, seconds), sizes, both, 7, 40.0, is_other=is_failure)
    np.testing.assert_array_equal(other, change)  # failures teach rescales nothing
