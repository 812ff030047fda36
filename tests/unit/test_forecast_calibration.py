"""Quantiles from past errors: against brute force, what they cover, and how their levels are corrected."""

from __future__ import annotations

import numpy as np
import pytest
from error_windows import cut_window
from hypothesis import given, settings
from hypothesis import strategies as st

from include.utc import HOUR_S
from models.forecasting.calendar import Calendar
from models.forecasting.calibration import MAX_SHIFT, Calibration, CalibrationState
from models.forecasting.champion import choose_champions
from models.forecasting.error_scale import scale, shape
from models.forecasting.errors import SortedErrors
from models.forecasting.leads import LeadGrid

CALENDAR = Calendar(0, HOUR_S)
LEVELS = np.array([0.1, 0.9, 0.95])
CALIBRATION = Calibration(LEVELS, CALENDAR, LeadGrid.of(CALENDAR, 24))
EXPAND = CALIBRATION.grid.expand


def run(errors: np.ndarray, at: np.ndarray, first: int = 0, state: CalibrationState | None = None) -> CalibrationState:
    """The state after the origins from index ``first`` on, all from one window of errors."""
    state = state or CALIBRATION.initial_state(errors.shape[1])
    window = cut_window(CALIBRATION, errors, np.ones_like(errors), at, first)
    for place in range(first, len(at)):
        state = CALIBRATION.step(state, window, place)
    return state


def weighted_quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    """The smallest value whose weight, with that of all smaller ones, reaches the level: one at a time."""
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if np.isfinite(value)]
    total, reached = sum(weight for _, weight in known), 0.0
    for value, weight in sorted(known):
        reached += weight
        if weight and reached >= level * total * (1 - 1e-12):
            return float(value)
    return float("nan")


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
@settings(max_examples=40, deadline=None)
def test_weighted_quantiles_are_those_of_a_plain_loop(seed: int, level: float) -> None:
    generator = np.random.default_rng(seed)
    errors = generator.normal(size=(4, 3, 7))
    errors[generator.random(errors.shape) < 0.2] = np.nan
    weights = generator.random((4, 7)) * (generator.random((4, 7)) < 0.8)
    grouped = SortedErrors.of(errors).group(np.arange(7) // 3)
    result = grouped.quantiles(np.full((1, 3), level), weights)[0]
    assert result.shape == (3, 3)
    for series in range(3):
        for group, leads in enumerate((slice(0, 3), slice(3, 6), slice(6, 7))):
            own = errors[:, series, leads]
            assert result[series, group] == pytest.approx(
                weighted_quantile(own.ravel(), weights[:, leads].ravel(), level), nan_ok=True
            )


def predicted(errors: np.ndarray, spacing: int) -> tuple[CalibrationState, np.ndarray, np.ndarray]:
    """Offsets over the leads, shape (P, L, n, H), for origins so many hours apart."""
    at = np.arange(1, len(errors) + 1) * spacing
    state = run(errors, at)
    return state, EXPAND(state.offsets.size), at


def covered(errors: np.ndarray, offsets: np.ndarray, level: int) -> float:
    return float((errors <= offsets[:, level]).mean())


@pytest.mark.parametrize("spacing", [3, 6])
def test_quantiles_cover_the_share_of_their_level(spacing: int) -> None:
    generator = np.random.default_rng(8)
    count = 14 * 24 // spacing
    load = generator.gumbel(size=(400, 16 * 24 + 24)) + np.repeat(generator.normal(0, 0.5, (400, 17)), 24, axis=1)
    at = np.arange(1, count + 1) * spacing
    errors = np.stack([load[:100, origin : origin + 24] for origin in at])
    _, offsets, _ = predicted(errors, spacing)
    late = slice(count // 2, None)
    assert 0.07 <= covered(errors[late], offsets[late], 0) <= 0.13
    assert 0.88 <= covered(errors[late], offsets[late], 1) <= 0.92
    assert 0.93 <= covered(errors[late], offsets[late], 2) <= 0.97


def test_after_a_shift_coverage_comes_back() -> None:
    generator = np.random.default_rng(3)
    load = generator.normal(size=(40, 22 * 24))
    load[:, 12 * 24 :] += 0.7
    errors = np.stack([load[:, origin : origin + 24] for origin in np.arange(1, 160) * 3])
    _, offsets, _ = predicted(errors, 3)
    day, later = slice(12 * 8, 13 * 8), slice(15 * 8, 18 * 8)
    assert covered(errors[day], offsets[day], 1) < 0.86
    assert 0.87 <= covered(errors[later], offsets[later], 1) <= 0.93


def test_nothing_after_an_origin_matters() -> None:
    errors = np.random.default_rng(1).normal(size=(60, 3, 24))
    _, offsets, at = predicted(errors, 3)
    cut = 40
    changed = errors.copy()
    changed[at[:, None, None] + np.arange(24) >= at[cut] + 0 * errors] += 50
    _, other, _ = predicted(changed, 3)
    np.testing.assert_array_equal(offsets[: cut + 1], other[: cut + 1])
    assert not np.allclose(offsets[-1], other[-1])


def test_days_in_parts_are_as_days_in_one() -> None:
    errors = np.random.default_rng(2).normal(size=(60, 2, 24))
    at = np.arange(1, 61) * 3
    first = run(errors[:40], at[:40])
    np.testing.assert_array_equal(run(errors, at).offsets.size, run(errors, at, 40, first).offsets.size)


@pytest.mark.parametrize("look_back_days", [1, 2, 7])
def test_errors_sorted_once_for_many_days_are_as_those_sorted_for_each(look_back_days: int) -> None:
    errors, middle, at = daily_errors(4, 12, grows=True)
    errors[np.random.default_rng(4).random(errors.shape) < 0.1] = np.nan
    look_back, shapes, state = look_back_days * 24, shape(middle), CALIBRATION.initial_state(errors.shape[1])
    for place, origin in enumerate(at.tolist()):
        day = origin // 24 * 24
        low, first, stop = np.searchsorted(at, [day - look_back, day, day + 24]).tolist()
        window = cut_window(CALIBRATION, errors[low:stop], shapes[low:stop], at[low:stop], first - low)
        state = CALIBRATION.step(state, window, place - low)
    made = CALIBRATION.calibrate(errors, middle, at, look_back)
    np.testing.assert_array_equal(made.proportion, state.offsets.proportion)
    np.testing.assert_array_equal(made.size, state.offsets.size)


def test_in_the_first_week_a_level_only_widens() -> None:
    errors = np.full((30, 1, 24), -1.0)
    errors[:, :, ::20] = 1.0
    state, _, at = predicted(errors, 3)
    assert -1 < state.level_shift[1, 0] < -MAX_SHIFT / 2  # it would narrow, were it allowed to
    window = cut_window(CALIBRATION, errors, np.ones_like(errors), at, 0)
    weights = np.full(window.target.shape, 1e9)
    days = window.first_known[0] + 24 * np.array([6, 8])
    in_first_week, later = (CALIBRATION._levels_to_use(state.level_shift, window, weights, int(now)) for now in days)
    np.testing.assert_allclose(in_first_week[1:, 0], LEVELS[1:])
    assert (later[1:] < in_first_week[1:] - MAX_SHIFT / 2).all()


def daily_errors(seed: int, days: int, grows: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors from origins three hours apart, what was predicted (P, n, 24), and the origins; twenty series."""
    generator = np.random.default_rng(seed)
    hours = np.arange((days + 2) * 24)
    rate = 100.0 * (1.1 - np.cos(2 * np.pi * hours / 24))
    noise = generator.normal(size=(20, len(hours))) * (0.1 * rate if grows else 11.0)
    at = np.arange(1, days * 8 + 1) * 3
    place = at[:, None] + np.arange(24)
    middle = np.repeat(rate[place][:, None], 20, axis=1)
    return noise[:, place].transpose(1, 0, 2), middle, at


@pytest.mark.parametrize("grows", [True, False])
def test_offsets_grow_with_the_load_where_errors_do(grows: bool) -> None:
    errors, middle, at = daily_errors(4, 14, grows)
    made = CALIBRATION.calibrate(errors, middle, at, 7 * 24)
    late = slice(len(at) // 2, None)
    assert (made.proportion[late] >= 0.6 if grows else made.proportion[late] <= 0.4).mean() > 0.9
    offsets = EXPAND(made.size) * scale(shape(middle), made.proportion)[:, None]
    quiet = middle[late] < 50
    for hours in (quiet, middle[late] > 150):
        share = (errors[late] <= offsets[late, 1])[hours].mean()
        assert 0.87 <= share <= 0.93
    width = offsets[late, 1][quiet].mean() / offsets[late, 1][~quiet].mean()
    assert width < 0.35 if grows else width > 0.85


def test_a_proportion_knows_nothing_of_its_day() -> None:
    errors, middle, at = daily_errors(5, 9, True)
    made = CALIBRATION.calibrate(errors, middle, at, 7 * 24)
    day = (at // 24 * 24)[-1]
    changed = np.where((at[:, None] + np.arange(24))[:, None] >= day, 50.0, errors)
    other = CALIBRATION.calibrate(changed, middle, at, 7 * 24)
    np.testing.assert_array_equal(made.proportion, other.proportion)
    before = at <= day
    np.testing.assert_array_equal(made.size[before], other.size[before])


@pytest.mark.parametrize("proportion", [0.0, 1.0])
def test_a_correction_compares_what_was_observed_with_an_offset_in_its_own_units(proportion: float) -> None:
    _, middle, at = daily_errors(6, 8, True)
    shapes = shape(middle)
    scales = scale(shapes, np.array(proportion))
    for size, covered_all in ((0.2, 0.0), (0.4, 1.0)):
        before = CalibrationState(
            np.zeros((3, 20)),
            sizes=(np.full((3, 20, CALIBRATION.grid.groups), size),) * (len(at) - 1),
            proportions=(np.full(20, proportion),) * (len(at) - 1),
        )
        window = cut_window(CALIBRATION, 0.3 * scales, shapes, at, len(at) - 1)
        after = CALIBRATION.step(before, window, len(at) - 1)
        pull = 2.0 * 3 / 24 * (LEVELS - covered_all)  # three hours of a day, twice
        np.testing.assert_allclose(after.level_shift, np.repeat(pull[:, None], 20, axis=1))


def test_where_nothing_is_predicted_an_error_has_a_size() -> None:
    assert (scale(shape(np.zeros((2, 24))), np.ones(2)) > 0).all()
    assert np.isnan(shape(np.full((2, 24), np.nan))).all()


def test_no_error_known_is_no_offset() -> None:
    _, offsets, _ = predicted(np.full((3, 1, 24), np.nan), 1)
    assert np.isnan(offsets).all()


def losses(*by_method: float) -> np.ndarray:
    """Losses of one series on five days, the same on each."""
    return np.repeat(np.array(by_method)[:, None, None], 5, axis=1)


@pytest.mark.parametrize(
    ("given_losses", "incumbent", "expected"),
    [
        (losses(1.0, 0.97), 0, 1),
        (losses(1.0, 0.985), 0, 0),  # better, but within the margin
        (losses(1.0, 0.985), 1, 1),
        (losses(0.97, 1.0), 1, 0),  # the champion in office is beaten in its turn
        (losses(0.999, 1.0), 1, 0),  # the first method needs no margin
        (losses(1.0, 0.9, 0.8), 0, 2),
        (losses(1.0, np.nan), 0, 0),
        (losses(np.nan, 0.5), 0, 0),  # nothing to compare with
        (losses(0.0, 0.0), 0, 0),
    ],
)
def test_a_champion_stays_until_beaten_by_the_margin(given_losses: np.ndarray, incumbent: int, expected: int) -> None:
    assert choose_champions(given_losses, np.array([incumbent]), 0.02).tolist() == [expected]


def test_a_challenger_is_judged_on_common_days_and_on_enough_of_them() -> None:
    office, challenger = np.array([9.0, 9.0, 1.0, 1.0, 1.0]), np.array([np.nan, np.nan, 0.9, 0.9, 0.9])
    assert choose_champions(np.stack([office, challenger])[:, :, None], np.array([0]), 0.02).tolist() == [1]
    challenger[2] = np.nan
    assert choose_champions(np.stack([office, challenger])[:, :, None], np.array([0]), 0.02).tolist() == [0]
    worse = np.array([np.nan, np.nan, 1.1, 1.1, 1.1])  # lower than the office's mean of all, higher where both stand
    assert choose_champions(np.stack([office, worse])[:, :, None], np.array([0]), 0.02).tolist() == [0]


def test_one_lucky_day_makes_no_champion() -> None:
    office, challenger = np.full(7, 1.0), np.full(7, 1.01)
    office[3], challenger[3] = 20.0, 1.0
    assert choose_champions(np.stack([office, challenger])[:, :, None], np.array([0]), 0.02).tolist() == [0]
