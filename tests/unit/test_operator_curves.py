"""The pipeline's capacity curves: extrapolation, key groups, uncertainty, and robustness against gross errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Floats
from models.capacity.capacity_samples import CapacitySamples, pack
from models.capacity.interval_calibration import SupportRegion
from models.capacity.operator_curves import OperatorCurves, fit_operator_curves
from models.capacity.robust_means import find_outliers, reduce_windows, select_recent
from models.capacity.scaling_shapes import LOG_PRIOR, log_shapes

TOP = 64


def fit(per_s: Floats, at: list[int], key_groups: float = 128.0) -> OperatorCurves:
    samples = pack(np.zeros(len(at), np.int64), at, np.full(len(at), 5), per_s, 4 * (0.02 * per_s) ** 2)
    return fit_operator_curves(samples, np.array([max(at)], float), np.array([key_groups]), TOP)


def gunther(at: Floats, contention: float) -> Floats:
    return np.asarray(1000.0 * at / (1.0 + contention * (at - 1.0)), float)


@pytest.mark.parametrize("contention", [0.0, 0.02, 0.06])
def test_extrapolates_to_twice_what_was_seen(contention: float) -> None:
    at = [1, 2, 4, 7, 11, 16]
    result = fit(gunther(np.array(at, float), contention), at)
    true = gunther(np.arange(1.0, TOP + 1), contention)
    np.testing.assert_allclose(result.mean_per_s[0, :16], true[:16], rtol=0.02)
    np.testing.assert_allclose(result.mean_per_s[0, 31], true[31], rtol=0.1)


def test_learns_the_stairs_of_key_groups_only_where_there_are_some() -> None:
    at = [4, 9, 12, 17, 24, 27, 32]
    grid = np.arange(1.0, TOP + 1)
    stairs = 128 / np.ceil(128 / grid)
    result = fit(1000.0 * stairs[np.array(at) - 1], at)
    np.testing.assert_allclose(result.mean_per_s[0, 19], 1000.0 * stairs[19], rtol=0.02)  # 7 groups each, as at 19
    np.testing.assert_allclose(result.mean_per_s[0, 19], result.mean_per_s[0, 18], rtol=0.01)
    unknown = fit(1000.0 * np.array(at, float), at, np.nan)
    assert unknown.mean_per_s[0, 19] > 1.03 * unknown.mean_per_s[0, 18]


def test_is_wide_where_data_do_not_tell_how_it_goes_on() -> None:
    one = fit(np.array([3000.0]), [3], np.nan)
    several = fit(gunther(np.array([1.0, 2, 4, 8, 16]), 0.03), [1, 2, 4, 8, 16], np.nan)
    share = one.sd_per_s[0] / one.mean_per_s[0]
    assert share[2] == share.min() < 0.06
    assert share[5] > 0.1
    assert (np.diff(share[3:]) >= 0).all()
    assert (several.sd_per_s[0, 16:32] / several.mean_per_s[0, 16:32] < 0.2).all()
    assert np.isnan(one.length_scale[0])
    assert not np.isfinite(one.left_out).any()


def test_hidden_points_tell_where_they_were() -> None:
    result = fit(gunther(np.array([2.0, 3, 4, 8, 10]), 0.02), [2, 3, 4, 8, 10])
    assert np.isfinite(result.left_out[0]).tolist() == [False, True, False, True, True]
    assert result.left_out_place[0, [1, 3, 4]].tolist() == [
        SupportRegion.BETWEEN,
        SupportRegion.BEYOND,
        SupportRegion.BEYOND,
    ]
    assert (np.abs(result.left_out[0, [1, 3, 4]]) < 2).all()


@settings(deadline=None)
@given(scale=st.floats(1e-3, 1e6))
def test_the_unit_of_rates_does_not_matter(scale: float) -> None:
    at = [1, 3, 6, 9]
    usual, other = (fit(factor * gunther(np.array(at, float), 0.05), at) for factor in (1.0, scale))
    np.testing.assert_allclose(other.mean_per_s, scale * usual.mean_per_s, rtol=1e-6)
    np.testing.assert_allclose(other.sd_per_s, scale * usual.sd_per_s, rtol=1e-5)


def test_an_operator_does_not_depend_on_its_batch() -> None:
    at = [1, 3, 6, 9]
    alone = fit(gunther(np.array(at, float), 0.05), at)
    first = pack(np.zeros(4, np.int64), at, np.full(4, 5), gunther(np.array(at, float), 0.05), np.full(4, 1.0))
    assert isinstance(first, CapacitySamples)
    per_s = gunther(np.array([*at, 2.0, 40.0]), 0.05)
    squares = 4 * (0.02 * per_s) ** 2
    samples = pack([0, 0, 0, 0, 1, 1], [*at, 2, 40], np.full(6, 5), per_s, squares)
    both = fit_operator_curves(samples, np.array([9.0, 40.0]), np.array([128.0, np.nan]), TOP)
    np.testing.assert_allclose(both.mean_per_s[0], alone.mean_per_s[0], rtol=1e-9)


def test_shapes_are_a_distribution_and_start_at_one_instance() -> None:
    assert np.exp(LOG_PRIOR).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(log_shapes(300, 128.0)[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(log_shapes(9, np.nan)[-1], log_shapes(9, 1e9)[-1], rtol=1e-6)


def test_a_gross_error_is_left_out_and_honest_spread_is_not() -> None:
    draws = np.random.default_rng(1)
    point = np.repeat(np.arange(40), 5)
    honest = 1000.0 * np.exp(0.03 * draws.standard_normal(200))
    assert find_outliers(point, point // 4, honest).mean() < 0.02
    wild = honest.copy()
    wild[::25] *= 2.0
    assert find_outliers(point, point // 4, wild)[::25].all()
    assert not find_outliers(np.array([0, 0]), np.array([0, 0]), np.array([1.0, 9.0])).any()
    assert find_outliers(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)).shape == (0,)


def test_windows_are_reduced_to_one_point_per_parallelism() -> None:
    owner, at = np.array([1, 0, 0, 0]), np.array([2, 3, 3, 1])
    result = reduce_windows(owner, at, np.array([8.0, 4.0, 6.0, 2.0]))
    assert [column.tolist() for column in result] == [[0, 0, 1], [1, 3, 2], [1, 2, 1], [2.0, 5.0, 8.0], [0.0, 2.0, 0.0]]
    assert [len(column) for column in reduce_windows(*(np.zeros(0, np.int64),) * 2, np.zeros(0))] == [0] * 5


def test_the_latest_windows_of_a_parallelism_are_kept() -> None:
    owner, at = np.array([0, 0, 0, 0, 1]), np.array([3, 3, 3, 1, 3])
    assert sorted(select_recent(owner, at, np.array([1.0, 3.0, 2.0, 0.0, 0.0]), 2).tolist()) == [1, 2, 3, 4]
