"""What every registered forecaster promises; a new one is held to it by being registered."""

from __future__ import annotations

import numpy as np
import pytest

from models.forecasting import Calendar, default_registry
from models.forecasting.base import Forecaster, registry
from models.forecasting.rate_history import prepare
from models.forecasting.seasonal_naive import SeasonalNaive

CALENDAR = Calendar(1_772_000_000 // 3600 * 3600, 3600)
DAY, HORIZON = 24, 30
ORIGINS = np.array([17 * DAY, 12 * DAY + 5, 20 * DAY])

every_method = pytest.mark.parametrize("method", default_registry().values(), ids=lambda method: method.name)


def rates() -> np.ndarray:
    generator = np.random.default_rng(11)
    hours = np.arange(20 * DAY)
    level = generator.uniform(10, 1e5, (5, 1))
    made = level * (1.5 + np.sin(2 * np.pi * (hours + 5) / DAY) + 0.1 * generator.standard_normal((5, len(hours))))
    made[1, 100:110] = np.nan
    made[2, : 15 * DAY] = np.nan
    made[3, -40:] = np.nan
    return np.abs(made)


@every_method
def test_shape_and_sign(method: Forecaster) -> None:
    paths = method.predict(prepare(rates(), CALENDAR), ORIGINS, HORIZON)
    assert paths.shape == (3, 5, HORIZON)
    assert (paths[np.isfinite(paths)] >= 0).all()
    assert np.isfinite(paths[:, [0, 1, 3, 4]]).all()


@every_method
def test_nothing_after_an_origin_matters(method: Forecaster) -> None:
    history = prepare(rates(), CALENDAR)
    later = rates()
    later[:, 17 * DAY :] *= np.linspace(1, 3, 3 * DAY)
    changed = prepare(later, CALENDAR)
    early = slice(0, 2)
    np.testing.assert_allclose(
        method.predict(history, ORIGINS, HORIZON)[early], method.predict(changed, ORIGINS, HORIZON)[early], rtol=1e-9
    )


@every_method
def test_origins_together_are_as_origins_alone(method: Forecaster) -> None:
    history = prepare(rates(), CALENDAR)
    together = method.predict(history, ORIGINS, HORIZON)
    for place in range(len(ORIGINS)):
        alone = method.predict(history, ORIGINS[place : place + 1], HORIZON)
        np.testing.assert_allclose(together[place], alone[0], rtol=1e-9)


@every_method
def test_neighbours_do_not_matter(method: Forecaster) -> None:
    whole = method.predict(prepare(rates(), CALENDAR), ORIGINS, HORIZON)
    for row in range(5):
        alone = method.predict(prepare(rates()[row : row + 1], CALENDAR), ORIGINS, HORIZON)
        np.testing.assert_allclose(whole[:, row], alone[:, 0], rtol=1e-9)
        if not method.rounds_by_batch:
            np.testing.assert_array_equal(whole[:, row], alone[:, 0])


@every_method
def test_scale_does_not_matter(method: Forecaster) -> None:
    once = method.predict(prepare(rates(), CALENDAR), ORIGINS, HORIZON)
    many = method.predict(prepare(1000 * rates(), CALENDAR), ORIGINS, HORIZON)
    np.testing.assert_allclose(many, 1000 * once, rtol=1e-9)


@every_method
def test_the_same_input_gives_the_same_bits_and_stays_untouched(method: Forecaster) -> None:
    history = prepare(rates(), CALENDAR)
    filled = history.filled.copy()
    first = method.predict(history, ORIGINS, HORIZON)
    np.testing.assert_array_equal(first, method.predict(history, ORIGINS, HORIZON))
    np.testing.assert_array_equal(history.filled, filled)


@every_method
def test_too_short_a_history_is_no_prediction(method: Forecaster) -> None:
    paths = method.predict(prepare(rates(), CALENDAR), ORIGINS, HORIZON)
    for place, origin in enumerate(ORIGINS):
        length_days = (origin - 15 * DAY) / DAY  # of series 2, which begins on day 15
        known = length_days > 0 and length_days >= method.min_history_days
        assert np.isfinite(paths[place, 2]).all() == known


def test_two_methods_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name each"):
        registry([SeasonalNaive(), SeasonalNaive()])
    with pytest.raises(ValueError, match="must be one"):
        registry([])
