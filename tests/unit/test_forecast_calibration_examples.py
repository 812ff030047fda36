"""Calibration in small examples, each worked out by hand: leads and their groups, levels, corrections and offsets."""

from __future__ import annotations

import numpy as np
import pytest
from error_windows import cut_window

from include.utc import HOUR_S
from models.forecasting.calendar import Calendar
from models.forecasting.calibration import (
    MAX_LEVEL,
    MAX_SHIFT,
    MIN_LEVEL,
    Calibration,
    CalibrationState,
    ErrorWindow,
)
from models.forecasting.leads import LeadGrid

HOURS = Calendar(0, HOUR_S)
LEVELS = np.array([0.02, 0.5, 0.9, 0.95])


def hourly(levels: np.ndarray = LEVELS) -> Calibration:
    """Forecasts of a day in hours: every hour is a lead, three of them are a group."""
    return Calibration(levels, HOURS, LeadGrid.of(HOURS, 24))


def window_of(errors: np.ndarray, at: list[int], levels: np.ndarray = LEVELS) -> ErrorWindow:
    return cut_window(hourly(levels), errors, np.ones_like(errors), np.array(at), 0)


@pytest.mark.parametrize(
    ("bin_s", "horizon", "step", "first", "count", "group"),
    [
        (300, 288, 5, 2, 58, 7),  # every 25 minutes; 7 of them are the last that fit into 3 hours
        (900, 96, 2, 1, 48, 6),
        (3600, 24, 1, 0, 24, 3),  # an hour is the shortest there is
        (6 * 3600, 8, 1, 0, 8, 1),  # longer than a group
        (300, 3, 3, 1, 1, 1),  # a forecast shorter than the 25 minutes
        (300, 12, 5, 2, 2, 2),  # a forecast shorter than a group
    ],
)
def test_leads_lie_25_minutes_apart_in_groups_of_three_hours(
    bin_s: int, horizon: int, step: int, first: int, count: int, group: int
) -> None:
    grid = LeadGrid.of(Calendar(0, bin_s), horizon)
    assert (grid.horizon, grid.step, grid.group) == (horizon, step, group)
    assert isinstance(grid.group, int)
    assert grid.leads.tolist() == [first + step * place for place in range(count)]
    assert grid.leads[-1] < horizon
    assert grid.group_of_lead.tolist() == [place // group for place in range(count)]
    assert grid.groups == grid.group_of_lead[-1] + 1


def test_each_bin_has_the_value_of_its_group_and_those_behind_the_last_lead_that_of_the_last() -> None:
    by_group = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]])  # (3, 1, G)
    grid = LeadGrid(horizon=9, step=4, group=1)  # leads 2 and 6; bin 8 would begin a third group
    assert grid.expand(by_group).tolist() == [[[one] * 4 + [other] * 5] for ((one, other),) in by_group.tolist()]
    assert LeadGrid(10, 2, 2).expand(np.array([1.0, 2.0, 3.0])).tolist() == [1] * 4 + [2] * 4 + [3] * 2


def test_the_first_known_error_of_each_series() -> None:
    errors = np.zeros((3, 3, 24))
    errors[:2, 1] = np.nan
    errors[2, 1, :5] = np.nan
    errors[:, 2] = np.nan
    known = window_of(errors, [10, 20, 30]).first_known
    assert known[:2].tolist() == [10, 35]
    assert known[2] > 1e9  # never


def levels_to_use(shift: float, known_h: int, weight: float = 1e9, at: tuple[int, ...] = (200, 203)) -> np.ndarray:
    """Levels of one series whose first error was known so many hours ago, all with one shift."""
    window = window_of(np.zeros((len(at), 1, 24)), list(at))
    weights = np.full(window.target.shape, weight)
    return hourly()._levels_to_use(np.full((4, 1), shift), window, weights, at[0] + known_h)[:, 0]


@pytest.mark.parametrize(
    ("shift", "known_h", "used"),
    [
        (0.03, 100, [0.02, 0.5, 0.93, 0.98]),  # upper levels widen at once; a lower one would narrow
        (-0.01, 100, [0.01, 0.49, 0.9, 0.95]),
        (0.03, 7 * 24, [0.05, 0.53, 0.93, 0.98]),  # from a week on they may narrow as well
        (-0.01, 7 * 24, [0.01, 0.49, 0.89, 0.94]),
        (-0.01, 7 * 24 - 1, [0.01, 0.49, 0.9, 0.95]),
        (0.3, 100, [0.02, 0.5, 0.9 + MAX_SHIFT, MAX_LEVEL]),
        (-0.3, 200, [MIN_LEVEL, 0.5 - MAX_SHIFT, 0.9 - MAX_SHIFT, 0.95 - MAX_SHIFT]),
    ],
)
def test_a_level_is_shifted_within_its_bounds_and_in_the_first_week_outwards(
    shift: float, known_h: int, used: list[float]
) -> None:
    np.testing.assert_allclose(levels_to_use(shift, known_h), used, atol=1e-9)


@pytest.mark.parametrize(
    ("at", "weight", "independent"),
    [
        (tuple(range(200, 224, 3)), 0.5, 12.0),  # 192 errors of half a weight; each hour is predicted eight times
        ((200, 203), 1.0, 6.0),
        ((200,), 1.0, 24.0),  # one origin predicts each hour once
        ((200, 224), 1.0, 48.0),
        ((200, 296), 1.0, 48.0),  # also where days lie between
    ],
)
def test_upper_levels_rise_by_one_over_the_number_of_independent_errors(
    at: tuple[int, ...], weight: float, independent: float
) -> None:
    upper = [min(level * (1 + 1 / independent), MAX_LEVEL) for level in (0.9, 0.95)]
    np.testing.assert_allclose(levels_to_use(0.0, 200, weight, at), [0.02, 0.5, *upper])


def test_less_than_one_error_counts_as_one() -> None:
    levels = np.array([0.3, 0.4, 0.55])
    window = window_of(np.zeros((1, 1, 24)), [200], levels)
    used = hourly(levels)._levels_to_use(np.zeros((3, 1)), window, np.full((1, 24), 1e-9), 400)
    assert used[:, 0].tolist() == [0.3, 0.4, MAX_LEVEL]


def test_errors_count_as_one_within_an_hour_and_unknown_ones_not_at_all() -> None:
    calendar = Calendar(0, 900)
    calibration = Calibration(LEVELS, calendar, LeadGrid.of(calendar, 96))  # 48 leads, one in half an hour
    errors = np.zeros((1, 2, 96))
    errors[:, 1, 48:] = np.nan
    window = cut_window(calibration, errors, np.ones_like(errors), np.array([0]), 0)
    assert calibration._independent_errors(window, np.ones(window.target.shape)).tolist() == [24.0, 12.0]


def corrected(errors: np.ndarray, at: list[int], theta: float, size: float = 1.0) -> np.ndarray:
    """Theta of levels 0.02, 0.5, 0.9 and 0.95 at the last origin; earlier offsets are all ``size``."""
    calibration, count = hourly(), len(at) - 1
    window = cut_window(calibration, errors, np.ones_like(errors), np.array(at), count)
    series, groups = errors.shape[1], calibration.grid.groups
    shift = np.full((4, series), theta)
    before = CalibrationState(shift, (np.full((4, series, groups), size),) * count, (np.zeros(series),) * count)
    return calibration.step(before, window, count).level_shift


def test_one_error_since_the_last_origin_corrects_every_level() -> None:
    errors = np.full((2, 3, 24), np.nan)
    errors[0, :, 0] = [0.5, 2.0, np.nan]  # below the offset, above it, unknown; of the hour at the last origin
    result = corrected(errors, [10, 11], 0.024)
    rest, gain = 0.024 * 23 / 24, 2.0 / 24
    np.testing.assert_allclose(result[:, 0], rest + gain * (LEVELS - 1))
    np.testing.assert_allclose(result[:, 1], rest + gain * LEVELS)
    np.testing.assert_allclose(result[:, 2], rest)


def test_an_error_as_large_as_its_offset_is_covered() -> None:
    errors = np.full((2, 1, 24), np.nan)
    errors[0, 0, 0] = 1.0
    np.testing.assert_allclose(corrected(errors, [10, 11], 0.0)[:, 0], 2.0 / 24 * (LEVELS - 1))


def test_after_more_than_a_day_the_correction_is_that_of_a_day() -> None:
    errors = np.full((2, 1, 24), 2.0)
    np.testing.assert_allclose(corrected(errors, [10, 46], 0.02)[:, 0], 2.0 * LEVELS)


def test_only_hours_since_the_last_origin_count() -> None:
    errors = np.full((3, 1, 24), 2.0)
    errors[0, 0, :3] = 0.0  # covered, and counted when the second origin came
    errors[1, 0, 3:] = 0.0  # hours after the third origin
    np.testing.assert_allclose(corrected(errors, [10, 13, 16], 0.0)[:, 0], 2.0 * 3 / 24 * LEVELS)


def test_without_an_origin_before_theta_stays() -> None:
    window = window_of(np.zeros((2, 1, 24)), [10, 13])
    shift = np.full((4, 1), 0.02)
    assert hourly().step(CalibrationState(shift), window, 0).level_shift.tolist() == shift.tolist()


def test_errors_of_origins_without_offsets_correct_nothing() -> None:
    window = window_of(np.full((3, 1, 24), 9.0), [10, 13, 16])
    state = hourly().step(hourly().initial_state(1), window, 2)
    assert state.level_shift.tolist() == [[0.0]] * 4
    assert len(state.sizes) == len(state.proportions) == 1


def test_a_group_without_errors_takes_the_offset_of_all_leads() -> None:
    errors = np.tile(np.arange(24.0), (9, 1, 1))
    errors[:, :, :3] = np.nan
    at = list(range(0, 9 * 24, 24))
    window = window_of(errors, at)
    size = hourly().step(hourly().initial_state(1), window, 8).sizes[0][:, 0]  # (L, G)
    pooled = size[:, 0]
    assert pooled[1] in range(12, 15)  # the middle of 3..23
    # Each other group has three values; 0.85 of its own quantile and the rest from all.
    np.testing.assert_allclose(size[1, 1:], [0.85 * own + 0.15 * pooled[1] for own in range(4, 24, 3)])
    np.testing.assert_allclose(size[3, 1:], [0.85 * own + 0.15 * pooled[3] for own in range(5, 24, 3)])


def test_days_without_origins_are_left_out_and_the_first_day_is_not() -> None:
    at = np.array([5, 30, 4 * 24 + 1])
    errors = np.random.default_rng(7).normal(size=(3, 2, 24))
    made = hourly().calibrate(errors, np.full((3, 2, 24), 100.0), at, 7 * 24)
    assert made.size.shape == (3, 4, 2, 8)
    assert made.proportion.shape == (3, 2)
    assert np.isnan(made.size[0]).all()
    assert np.isfinite(made.size[1:]).all()
