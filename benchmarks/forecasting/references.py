"""Two usual methods to measure the forecast against: quantile LightGBM alone, and MSTL with AutoETS.

Both know what ours knows: the cleaned rates before an origin.  Neither takes anything from ``models/forecasting`` but
the cleaning of the rates.

    T bins, O origins, J leads, F inputs, H bins of horizon, L levels of QUANTILES
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import lightgbm
import numpy as np

from include.utc import DAY_S, HOUR_S
from lab.replay.rolling import append_rates
from models.arrays import Floats, Ints
from models.forecasting import QUANTILES, Calendar
from models.forecasting.rate_history import prepare

Reference = Callable[[Floats, Calendar, Ints, int], Floats]
"""(rates (T,), calendar, origins (O,), H) -> quantiles (O, L, H), NaN where the history is too short."""

ROUNDS: Final = 60
"""With the rate and the leaves, the best of five forms on three of the tuning traces; larger ones learn accidents."""
PARAMETERS: Final = {
    "objective": "quantile",
    "learning_rate": 0.08,
    "num_leaves": 8,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "seed": 0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
MOST_ROWS: Final = 60_000
LEAD_STEP_S: Final = 25 * 60
"""One lead in so much time is a training row; it does not divide the hour, so all minutes of it are learnt from."""
RECENT_S: Final = (900, HOUR_S, 3 * HOUR_S, 6 * HOUR_S, DAY_S)
LAG_DAYS: Final = (1, 2, 7, 14)
SMOOTHING_S: Final = 1800
MSTL_DAYS: Final = 28
LEAST_DAYS: Final = 2.0


class MissingLibraryError(RuntimeError):
    """A library that only this comparison needs is not installed; the message says how to get it."""


def forecast_lightgbm(rates_per_s: Floats, calendar: Calendar, origins: Ints, horizon: int) -> Floats:
    """Return direct quantile forecasts of LightGBM, one model per level, fitted each midnight on all rates before.

    The quantiles are as the library gives them, at least 0.  See :data:`Reference` for shapes.
    """
    day = calendar.day
    made = np.full((len(origins), len(QUANTILES), horizon), np.nan)
    for begin in np.unique(origins // day) * day:
        mine = np.flatnonzero(origins // day == begin // day)
        observed = prepare(rates_per_s[None, :begin], calendar)
        models = _fit_levels(observed.observed[0], calendar, horizon)
        if not models:
            continue
        today = append_rates(observed, rates_per_s[None, begin : begin + day]).observed[0]
        features, level = lag_features(today, calendar, origins[mine], np.arange(horizon, dtype=np.int64))
        for place, model in enumerate(models):
            share = np.asarray(model.predict(features.reshape(-1, features.shape[2]), num_threads=1))
            made[mine, place] = np.maximum(share.reshape(features.shape[:2]), 0.0) * level[:, None]
    return made


def _fit_levels(observed: Floats, calendar: Calendar, horizon: int) -> list[lightgbm.Booster]:
    """Return a model per level, none when there is too little to learn from."""
    hour, bins = calendar.bins(HOUR_S), len(observed)
    origins = np.arange(bins - hour, int(LEAST_DAYS * calendar.day) - 1, -hour, dtype=np.int64)[::-1]
    leads = np.arange(0, horizon, calendar.bins(LEAD_STEP_S), dtype=np.int64)
    origins = origins[:: max(1, -(-len(origins) * len(leads) // MOST_ROWS))]
    if not len(origins):
        return []
    features, level = lag_features(observed, calendar, origins, leads)
    target = np.append(observed, np.nan)[np.minimum(origins[:, None] + leads, bins)] / level[:, None]
    known = np.isfinite(target) & (level > np.finfo(float).tiny)[:, None]
    if not known.any():
        return []
    rows = lightgbm.Dataset(features[known], target[known], params=PARAMETERS, free_raw_data=False)
    return [lightgbm.train({**PARAMETERS, "alpha": alpha}, rows, num_boost_round=ROUNDS) for alpha in QUANTILES]


def lag_features(observed: Floats, calendar: Calendar, origins: Ints, leads: Ints) -> tuple[Floats, Floats]:
    """Return inputs (O, J, F) that depend on bins before each origin alone, and the mean of the day before, (O,).

    They are the lead, the hour and weekday of the target, the recent means, their like a day and a week before, and the
    rates days before the target; rates over the mean of the day before the origin, NaN where nothing was measured.
    """
    bins = len(observed)
    counts = np.concatenate([[0.0], np.cumsum(np.isfinite(observed))])
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(observed))])

    def mean(start: Ints, stop: Ints) -> Floats:
        low, high = np.clip(start, 0, bins), np.clip(stop, 0, bins)
        count = counts[high] - counts[low]
        return np.where(count > 0, (sums[high] - sums[low]) / np.maximum(count, 1), np.nan)

    day, hour = calendar.day, calendar.bins(HOUR_S)
    target = origins[:, None] + leads
    level = np.maximum(np.nan_to_num(mean(origins - day, origins)), np.finfo(float).tiny)
    span = int(target.max()) + 1
    columns: list[Floats] = [
        (leads * calendar.bin_s / HOUR_S)[None, :],
        24 * calendar.day_share(0, span)[target],
        calendar.weekday(0, span).astype(np.float64)[target],
    ]
    recent = [mean(origins - calendar.bins(span_s), origins) for span_s in RECENT_S]
    recent += [mean(origins - hour - days * day, origins - days * day) for days in (1, 7)]
    columns += [(each / level)[:, None] for each in recent]
    half = calendar.bins(SMOOTHING_S) // 2
    for days in LAG_DAYS:
        at = target - days * day
        rate = np.where(at >= 0, np.append(observed, np.nan)[np.clip(at, 0, bins)], np.nan)
        smooth = mean(at - half, np.minimum(at + half + 1, origins[:, None]))
        known = at < origins[:, None]
        columns += [np.where(known, each, np.nan) / level[:, None] for each in (rate, smooth)]
    shape = (len(origins), len(leads))
    return np.stack([np.broadcast_to(column, shape) for column in columns], axis=-1), level


def forecast_mstl_autoets(rates_per_s: Floats, calendar: Calendar, origins: Ints, horizon: int) -> Floats:
    """Return statsforecast's MSTL, day and week, with AutoETS for the trend, fitted at each origin on 28 days.

    The quantiles are those of its prediction intervals, at least 0.  STL's smoothers skip a tenth of a day, as R's
    skip a tenth of their window: 15 times as fast, and the forecasts differ by less than 0.01%.  See :data:`Reference`
    for shapes.

    Raises:
        MissingLibraryError: statsforecast is not installed.
    """
    try:
        from statsforecast.models import MSTL, AutoETS
    except ImportError as error:
        raise MissingLibraryError("mstl_autoets needs statsforecast: pip install statsforecast==2.0.1") from error
    made = np.full((len(origins), len(QUANTILES), horizon), np.nan)
    jumps = dict.fromkeys(("trend_jump", "low_pass_jump"), max(1, calendar.day // 10))
    for place, origin in enumerate(origins):
        start = max(0, int(origin) - MSTL_DAYS * calendar.day)
        history = prepare(rates_per_s[None, start:origin], calendar.later(start))
        values = history.filled[0, int(history.begin[0]) :]
        if len(values) < LEAST_DAYS * calendar.day:
            continue
        seasons = [calendar.day] + ([calendar.week] if len(values) >= 2 * calendar.week else [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MSTL(season_length=seasons, trend_forecaster=AutoETS(model="ZZN"), stl_kwargs=jumps)
            result: dict[str, Any] = model.forecast(values, h=horizon, level=[80, 90])
        paths = (result["lo-80"], result["mean"], result["hi-80"], result["hi-90"])  # the levels of QUANTILES
        made[place] = np.maximum(np.stack(paths), 0.0)
    return made


REFERENCES: Final[dict[str, Reference]] = {
    "lightgbm": forecast_lightgbm,
    "mstl_autoets": forecast_mstl_autoets,
}
