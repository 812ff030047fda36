"""Series whose champion was chosen before: the bits of a contest that chose it, and none of its work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from models.arrays import Floats, Ints
from models.forecasting import ForecastBatch, ForecastSettings, batch, default_registry, forecast_batch
from models.forecasting.base import Registry, registry
from models.forecasting.boosting import fit
from models.forecasting.past_forecasts import find_needed
from models.forecasting.rate_history import RateHistory, prepare
from models.forecasting.seasonal_naive import SeasonalNaive
from tests.unit.test_forecast_engine import CALENDAR, DAY, load

SERIES = 11
SETTINGS = ForecastSettings(horizon=DAY, backtest_origins=4)
NAMES = ("blend", "seasonal_naive", "harmonic_ridge", "weekday_profile", "global_boosting")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small products of matrices are slow where threads wait for each other."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="module")
def rates() -> Floats:
    made = load(SERIES, 16)
    made[2, : 5 * DAY] = np.nan  # began later
    made[4, 400:420] = np.nan
    levels = np.random.default_rng(3).uniform(100, 5000, made.shape[1] // 8)
    made[7] = np.repeat(levels, 8)  # a new level every four hours, which nothing can forecast
    return np.maximum(made, 0.01)


@pytest.fixture(scope="module")
def methods(rates: Floats) -> Registry:
    history = prepare(rates, CALENDAR)
    fits = [fit([history], day * 86_400.0, DAY) for day in (12, 16)]
    return default_registry([one for one in fits if one is not None])


def hold_for(monkeypatch: pytest.MonkeyPatch, rates: Floats, methods: Registry, names: Sequence[str]) -> ForecastBatch:
    """Return the forecast of a contest of all series that these champions have won."""
    winners = np.array([NAMES.index(name) for name in names])
    with monkeypatch.context() as patched:
        patched.setattr(batch, "choose_champions", lambda *_: winners)
        return forecast_batch(rates, CALENDAR, SETTINGS, methods=methods)


def require_equal(ours: ForecastBatch, other: ForecastBatch, rows: Sequence[int]) -> None:
    np.testing.assert_array_equal(ours.quantiles[:, rows], other.quantiles[:, rows])
    for row in rows:
        assert (ours.method[row], ours.reason[row]) == (other.method[row], other.reason[row])
    assert ours.champion[rows].tolist() == other.champion[rows].tolist()


@pytest.mark.parametrize(
    "champions",
    [
        ["blend"] * SERIES,
        ["harmonic_ridge"] * SERIES,
        ["weekday_profile", "seasonal_naive"] * 5 + ["global_boosting"],
        ["blend", "harmonic_ridge", *["weekday_profile"] * 4, *["global_boosting"] * 4, "blend"],
        ["blend", *["seasonal_naive"] * 10],
    ],
    ids=["blend", "one", "apart", "mixed", "few_blends"],
)
def test_a_chosen_champion_has_the_bits_of_a_contest(
    monkeypatch: pytest.MonkeyPatch, rates: Floats, methods: Registry, champions: list[str]
) -> None:
    held = hold_for(monkeypatch, rates, methods, champions)
    made = forecast_batch(
        rates, CALENDAR, SETTINGS, methods=methods, previous_champions=champions, are_chosen=[True] * SERIES
    )
    require_equal(made, held, range(SERIES))
    assert (held.origins == 4).all()
    assert (made.origins == 0).all()
    assert np.isnan(made.mase).all()


def test_a_contest_beside_chosen_champions_has_the_bits_of_one_of_all(rates: Floats, methods: Registry) -> None:
    held = forecast_batch(rates, CALENDAR, SETTINGS, methods=methods)
    new = [1, 6]
    made = forecast_batch(
        rates,
        CALENDAR,
        SETTINGS,
        methods=methods,
        previous_champions=[None if row in new else name for row, name in enumerate(held.method)],
        are_chosen=[row not in new for row in range(SERIES)],
    )
    require_equal(made, held, range(SERIES))
    for ours, other in ((made.mase, held.mase), (made.pinball_q90, held.pinball_q90), (made.origins, held.origins)):
        np.testing.assert_array_equal(ours[:, new], other[:, new])
    assert (np.delete(made.origins, new, axis=1) == 0).all()


def test_a_champion_that_is_no_method_any_more_is_replaced_by_a_contest(rates: Floats) -> None:
    made = forecast_batch(
        rates,
        CALENDAR,
        SETTINGS,
        previous_champions=["a method of the past", *["blend"] * 10],
        are_chosen=[True] * SERIES,
    )
    assert (made.origins[:, 0] == 4).all()
    assert (made.origins[:, 1:] == 0).all()
    assert made.method[0] in NAMES


def test_a_champion_of_before_that_is_not_of_today_is_but_the_incumbent(rates: Floats) -> None:
    made = forecast_batch(rates, CALENDAR, SETTINGS, previous_champions=["blend"] * SERIES)
    assert (made.origins == 4).all()


def test_a_short_series_falls_back_whatever_was_chosen(rates: Floats) -> None:
    short = rates.copy()
    short[3, : -DAY // 2] = np.nan
    made = forecast_batch(short, CALENDAR, SETTINGS, previous_champions=["blend"] * SERIES, are_chosen=[True] * SERIES)
    assert made.method[3] == "recent_level"
    assert made.champion[3] == -1
    assert np.isfinite(made.quantiles).all()


@dataclass(frozen=True, slots=True)
class Counted:
    """Repeats the day before, and counts the series that it was asked for."""

    name: str
    asked: list[int] = field(default_factory=list)
    min_history_days: float = 0.0
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        self.asked.append(len(history.begin))
        return SeasonalNaive().predict(history, origins, horizon)


def test_a_method_is_asked_for_the_series_that_need_it_alone(rates: Floats) -> None:
    whole = Counted("whole", rounds_by_batch=True)
    part, unused = Counted("part"), Counted("unused")
    champions = ["whole"] * 4 + ["part"] * 7
    forecast_batch(
        rates,
        CALENDAR,
        SETTINGS,
        methods=registry([whole, part, unused]),
        previous_champions=champions,
        are_chosen=[True] * SERIES,
    )
    assert (whole.asked, part.asked, unused.asked) == ([SERIES], [7], [])


def test_a_blend_and_a_contest_need_all_methods() -> None:
    needed = find_needed(["a", "b"], ["blend", None, "a", "b"])
    assert needed.tolist() == [[True, True, True, False], [True, True, False, True]]
