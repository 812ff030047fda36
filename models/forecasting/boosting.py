"""Global model: one direct quantile model of LightGBM over all series of a fleet, for the middle of the forecast.

It predicts the difference of a series from its weekday profile, as a share of its level, from the present difference,
the differences at the same time yesterday and a week ago, and the calendar.  So a series can use what was learned from
others, and scale does not matter.  The lead is one of the inputs (a direct forecast), and the loss is the quantile loss
of the median.  The other quantiles come from the errors of a backtest, like those of every method
(`models/forecasting/calibration.py`); the blend mixes it with the other methods.

A fit knows the end of its training data, and only forecasts from origins at or after it; so a backtest needs an early
fit beside the newest one, and nothing leaks.  A fit is text in LightGBM's own format: nothing is pickled, and the same
rows give the same text.

Ke et al. 2017, "LightGBM: A highly efficient gradient boosting decision tree".

    P origins, n series, J leads (one per hour), F features
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from include.utc import HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.origin_inputs import OriginInputs, sample_leads
from models.forecasting.rate_history import RateHistory

if TYPE_CHECKING:
    import lightgbm

ROUNDS = 80
PARAMETERS = {
    "objective": "quantile",
    "alpha": 0.5,
    "learning_rate": 0.08,
    "num_leaves": 12,
    "min_data_in_leaf": 100,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "seed": 0,
    "num_threads": 1,  # with deterministic: the same bits however many cores there are
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
TRAINING_SPACING_S = 3 * HOUR_S
"""Distance of the origins that a series is learnt from."""
MOST_ROWS = 40_000
"""Rows of a fit: with more, origins are thinned out.  Fits in about a second on one core."""
LEAST_SERIES_DAYS = 7.0
"""No fit from less: from three days of one series only its accidents could be learned."""
LEAST_DAYS = 2.0
"""An origin is learnt from when the series has this much history before it."""


@dataclass(frozen=True, slots=True)
class BoostingFit:
    """A fitted model.

    Attributes:
        until_s: end of its training data, seconds since 1970.
        text: of the model, in LightGBM's format.
    """

    until_s: float
    text: str

    def predict(self, features: Floats) -> Floats:
        """Return the median of the target for rows of inputs, (R, F) -> (R,)."""
        return np.asarray(_read_model(self.text).predict(features, num_threads=1), float)


@cache
def load_lightgbm() -> ModuleType:
    """Return LightGBM: loaded where a series needs it, and without scikit-learn unless that is loaded already.

    It takes scikit-learn for wrappers of its own where it can, a second in each worker; without it does the same here.
    """
    is_absent = "sklearn" not in sys.modules
    if is_absent:
        sys.modules["sklearn"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("lightgbm")
    finally:
        if is_absent:
            del sys.modules["sklearn"]


@lru_cache(maxsize=8)
def _read_model(text: str) -> lightgbm.Booster:
    return load_lightgbm().Booster(model_str=text)


@dataclass(frozen=True, slots=True)
class GlobalBoosting:
    """Forecasts any series by the newest fit whose training data ended at or before the origin.

    Attributes:
        fits: in order of ``until_s``.
    """

    fits: tuple[BoostingFit, ...] = ()
    name: str = "global_boosting"
    min_history_days: float = LEAST_DAYS
    rounds_by_batch: bool = False

    def predict(self, history: RateHistory, origins: Ints, horizon: int) -> Floats:
        """See :class:`models.forecasting.base.Forecaster`."""
        calendar, n = history.calendar, len(history.begin)
        paths = np.full((len(origins), n, horizon), np.nan)
        until_s = np.array([fit.until_s for fit in self.fits])
        at_s = calendar.start_s + origins * calendar.bin_s
        newest = np.searchsorted(until_s, at_s, side="right") - 1
        for index in np.unique(newest[newest >= 0]):
            mine = np.flatnonzero(newest == index)
            at_origins = OriginInputs.of(history, origins[mine], horizon)
            features = at_origins.features()
            known = self.fits[index].predict(features.reshape(-1, features.shape[-1]))
            paths[mine] = at_origins.paths(known.reshape(features.shape[:-1]))
        enough = origins[:, None] - history.begin >= self.min_history_days * calendar.day
        return np.where(enough[:, :, None], np.maximum(paths, 0.0), np.nan)


def fit(histories: Sequence[RateHistory], until_s: float, horizon: int) -> BoostingFit | None:
    """Fit on the rates of some series before ``until_s``, seconds since 1970, for leads of ``horizon`` bins.

    The histories may have calendars of their own, as for time zones; None when there are too few series.
    """
    inputs, targets = [], []
    series_days = 0.0
    for history in histories:
        calendar = history.calendar
        stop = min(history.bins, int((until_s - calendar.start_s) // calendar.bin_s))
        spacing = calendar.bins(TRAINING_SPACING_S)
        leads = len(sample_leads(calendar, horizon))
        most = max(1, MOST_ROWS // max(1, sum(len(each.begin) for each in histories) * leads))
        origins = np.arange(stop - spacing, int(LEAST_DAYS * calendar.day) - 1, -spacing, dtype=np.int64)[::-1]
        origins = origins[:: -(-len(origins) // most)] if len(origins) else origins
        if not len(origins):
            continue
        at_origins = OriginInputs.of(history, origins, horizon)
        target = at_origins.targets(stop)
        old = origins[:, None] - history.begin >= LEAST_DAYS * calendar.day
        useful = np.isfinite(target) & old[:, :, None]
        series_days += (
            float(useful.any(axis=2).sum())
            * float(origins[-1] - origins[-2] if len(origins) > 1 else spacing)
            / calendar.day
        )
        inputs.append(at_origins.features()[useful])
        targets.append(target[useful])
    if series_days < LEAST_SERIES_DAYS:
        return None
    lightgbm = load_lightgbm()
    rows = lightgbm.Dataset(np.concatenate(inputs), np.concatenate(targets), params=PARAMETERS)
    return BoostingFit(until_s, lightgbm.train(PARAMETERS, rows, num_boost_round=ROUNDS).model_to_string())
