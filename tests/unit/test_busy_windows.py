"""Capacity depends on load: what is learnt from lightly and heavily loaded windows, and how far it is trusted."""

import numpy as np
import pytest
from capacity_points import add_observation
from scipy.special import ndtr

from benchmarks.capacity.load import find_busy_enough
from lab.policies.tuning.observed_capacity import capacity_at
from models.arrays import Floats
from models.capacity.busy_windows import light_load_sd, split_doubt
from models.capacity.capacity_samples import pack
from models.capacity.lower_tail import sd_towards
from models.capacity.operator_curves import OperatorCurves, fit_operator_curves
from models.policies.tuning.capacity_history import (
    History,
    ObservedCapacity,
    most_capacity_at,
)
from models.policies.tuning.surrogate import fit_surrogate

DAY_S = 86_400.0


def told(busy: list[float], per_s: list[float], at_s: list[float] | None = None) -> list[float]:
    """Return the capacities of the windows of one parallelism that count."""
    times = np.arange(len(busy)) * 300.0 if at_s is None else np.array(at_s)
    point = np.zeros(len(busy), np.int64)
    mask = find_busy_enough(point, times, np.array(busy), np.array(per_s))
    return np.array(per_s)[mask].tolist()


@pytest.mark.parametrize("light", [1, 3, 40])
@pytest.mark.parametrize("busy", [1, 5])
def test_light_windows_do_not_take_the_place_of_busy_ones(light: int, busy: int) -> None:
    join = told([0.52] * busy + [0.06] * light, [1100.0] * busy + [2850.0] * light)
    window = told([0.29] * light + [0.71] * busy, [500.0] * light + [784.0] * busy)
    assert join == [1100.0] * busy  # saturated it did 1,094 to 1,200
    assert window == [784.0] * busy  # 671 to 784


def test_of_a_lightly_used_operator_the_usual_windows_count() -> None:
    assert told([0.06, 0.059, 0.03], [2850.0, 2800.0, 3500.0]) == [2850.0]


CALM, STARVED = [(0.022, 28_800.0)] * 20, [(0.74, 852.0)] * 4  # of a source that takes 632/s


def test_windows_in_which_a_neighbour_had_the_processor_tell_no_capacity() -> None:
    busy, per_s = map(list, zip(*CALM, *STARVED, strict=True))
    assert told(busy, per_s) == [28_800.0] * 12
    history = watched([*CALM, *STARVED[:2]])
    assert capacity_at(history, 3) == 28_800.0
    assert history[0].busiest_share == 0.022


def test_windows_that_differ_by_their_neighbours_alone_leave_a_capacity_that_is_known() -> None:
    scattered = [(0.005, 93_000.0), (0.04, 11_400.0), (0.12, 3_750.0), (0.15, 2_800.0), (0.19, 1_840.0)]
    mean, sd = fit_surrogate([watched(scattered)], [4])
    assert mean[0, 2] == pytest.approx(3_750.0)
    assert mean[0, 2] > 1.28 * sd[0, 2]


def test_an_operator_that_became_slow_is_believed_so_within_a_day() -> None:
    of_a_day = [(0.3, 1000.0)] * 200 + [(0.75, 400.0)] * 200
    busy, per_s = map(list, zip(*of_a_day, strict=True))
    assert set(told(busy, per_s)) == {400.0}
    assert capacity_at(watched(of_a_day), 3) == 400.0


def test_from_a_high_load_on_all_windows_count() -> None:
    assert told([0.72, 0.99, 0.8, 0.5], [100.0, 101.0, 99.0, 140.0]) == [100.0, 101.0, 99.0]


def test_a_stall_is_busy_and_no_measure_of_the_load() -> None:
    assert told([0.5, 0.48, 1.0, 0.5, 0.47], [1000.0, 1010.0, 20.0, 990.0, 1000.0]) == [
        1000.0,
        1010.0,
        20.0,  # one of five: it is rejected as an outlier afterwards
        990.0,
        1000.0,
    ]


def test_after_a_week_a_faster_release_is_believed() -> None:
    week = [0.0, 300.0, 9 * DAY_S, 9 * DAY_S + 300]
    assert told([0.6, 0.6, 0.3, 0.3], [100.0, 100.0, 200.0, 200.0], week) == [200.0, 200.0]


def test_doubt_grows_as_the_busy_share_falls() -> None:
    shares = np.array([0.02, 0.06, 0.15, 0.29, 0.39, 0.4, 0.71])
    doubt = light_load_sd(shares)
    assert (np.diff(doubt) <= 0).all()
    assert doubt[-2:].tolist() == [0.0, 0.0]
    assert 0.15 < doubt[4] < doubt[3] < 0.3 < doubt[2]


def fit(at: list[int], per_s: list[float], busiest: list[float]) -> OperatorCurves:
    mean: Floats = np.array(per_s)
    owner = np.zeros(len(at), np.int64)
    shared, doubt = split_doubt(owner, np.array(busiest))
    samples = pack(owner, at, np.full(len(at), 5), mean, 4 * (0.02 * mean) ** 2, doubt=doubt)
    return fit_operator_curves(samples, np.array([max(at)], float), np.array([128.0]), 16, shared_doubt=shared)


@pytest.mark.parametrize(("at", "seen", "busy", "true"), [(3, 500.0, 0.29, 728.0), (2, 2850.0, 0.06, 1147.0)])
def test_the_interval_of_a_lightly_used_operator_holds_what_it_does_at_saturation(
    at: int, seen: float, busy: float, true: float
) -> None:
    result = fit([at], [seen], [busy])
    assert abs(true - result.mean_per_s[0, at - 1]) < 1.96 * result.sd_per_s[0, at - 1]
    assert result.mean_per_s[0, at - 1] - 1.28 * result.sd_per_s[0, at - 1] > 0


def test_more_light_points_are_no_more_certain() -> None:
    one, many = fit([4], [2000.0], [0.2]), fit([2, 4, 6, 8], [1000.0, 2000.0, 3000.0, 4000.0], [0.2] * 4)
    for result in (one, many):
        assert result.sd_per_s[0, 3] / result.mean_per_s[0, 3] >= 0.4
    busy = fit([2, 4, 6, 8], [1000.0, 2000.0, 3000.0, 4000.0], [0.6] * 4)
    assert busy.sd_per_s[0, 3] / busy.mean_per_s[0, 3] < 0.05


@pytest.mark.parametrize("factor", [2.5, 0.64])
def test_a_parallelism_seen_at_light_use_does_not_bend_the_curve_of_busier_ones(factor: float) -> None:
    at = [1, 2, 4, 8]
    true = 300.0 * np.array(at) / (1 + 0.02 * (np.array(at) - 1))
    observed = (true * [1, 1, 1, factor]).tolist()
    result = fit(at, observed, [0.8, 0.7, 0.6, 0.16])
    np.testing.assert_allclose(result.mean_per_s[0, np.array(at) - 1], true, rtol=0.1)
    assert np.isnan(result.left_out[0, 3])


def test_busy_points_are_fitted_as_they_were() -> None:
    at, per_s = [1, 2, 4, 8], [300.0, 590.0, 1130.0, 2100.0]
    mean = np.array(per_s)
    samples = pack(np.zeros(4, np.int64), at, np.full(4, 5), mean, 4 * (0.02 * mean) ** 2)
    plain = fit_operator_curves(samples, np.array([8.0]), np.array([128.0]), 16)
    result = fit(at, per_s, [0.8, 0.5, 0.45, 0.4])
    np.testing.assert_array_equal(result.mean_per_s, plain.mean_per_s)
    np.testing.assert_array_equal(result.sd_per_s, plain.sd_per_s)


def watched(rows: list[tuple[float, float]], history: History = ()) -> History:
    for number, (busy, per_s) in enumerate(rows):
        history = add_observation(history, 3, per_s, busy=busy, at_s=300.0 * number)
    return history


def test_the_controller_keeps_what_busy_windows_told() -> None:
    assert capacity_at(watched([(0.52, 1100.0)] * 2 + [(0.06, 2850.0)] * 9), 3) == 1100.0
    assert capacity_at(watched([(0.29, 500.0)] * 9 + [(0.71, 784.0)]), 3) == 784.0


def test_an_evening_that_fades_slowly_takes_the_peak_from_no_history() -> None:
    fading = [(0.6 * 0.97**n, 1000.0 * 0.99**n) for n in range(100)]
    history = watched(fading)
    assert history[0].busiest_share == 0.6
    assert min(history[0].recent_busy) >= 0.9 * 0.6
    assert capacity_at(history, 3) > 950.0


def test_a_stall_takes_the_place_of_nothing() -> None:
    history = watched([(0.5, 1000.0)] * 5 + [(1.0, 20.0)] + [(0.5, 1000.0)] * 5)
    assert capacity_at(history, 3) == 1000.0
    assert history[0].busiest_share == 0.5


def test_a_history_of_an_earlier_release_is_read_and_replaced_by_what_is_known() -> None:
    old = (ObservedCapacity(3, (2850.0, 2850.0)),)
    assert most_capacity_at(old, 3) == 2850.0
    assert capacity_at(watched([(0.5, 1100.0)], old), 3) == 1100.0


def test_light_use_alone_leaves_room_above() -> None:
    assert most_capacity_at(watched([(0.29, 500.0)]), 3) > 728.0
    assert most_capacity_at(watched([(0.71, 784.0)]), 3) == 784.0
    assert np.isnan(most_capacity_at((), 3))


def test_a_lightly_used_operator_does_not_hide_how_likely_a_busy_one_is_overloaded() -> None:
    mean, sd, rate = np.array([1000.0]), np.array([500.0]), np.array([60.0])
    assert ndtr((rate - mean) / sd)[0] > 0.02
    assert ndtr((rate - mean) / sd_towards(mean, sd, rate))[0] < 1e-6
    narrow = np.array([100.0])
    assert sd_towards(mean, narrow, rate)[0] == 100.0
    assert sd_towards(mean, sd, np.array([1500.0]))[0] == 500.0
    near = sd_towards(mean, sd, np.array([999.0]))[0]
    assert 0.99 * 500.0 < near <= 500.0
    assert np.isfinite(sd_towards(np.array([0.0, 10.0]), np.array([1.0, 5.0]), np.array([5.0, 0.0]))).all()
