"""What a forecast of a batch of series has made: quantiles, and the record of the methods that competed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.forecasting import fallback
from models.forecasting.contest import QUANTILES

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """Forecasts of n series over H bins, and the record of the M methods that competed.

    Attributes:
        quantiles: records/s at the levels of QUANTILES, shape (4, n, H), ordered and >= 0; NaN without any history.
        methods: names of the methods that competed.
        method: the method used for each series.
        reason: why a series fell back; else None.
        champion: index of the champion in ``methods``, -1 for a fallback, shape (n,).
        origins: days that a method was scored on, shape (M, n).
        mase: mean absolute error over that of repeating the day before, shape (M, n), NaN when unknown.
        pinball_q90: over the mean rate, shape (M, n), NaN when unknown.
        coverage_q90: share of bins at or below q90, shape (M, n), NaN when unknown.
    """

    quantiles: Floats
    methods: tuple[str, ...]
    method: list[str]
    reason: list[str | None]
    champion: Ints
    origins: Ints
    mase: Floats
    pinball_q90: Floats
    coverage_q90: Floats


def form_unscored_batch(n: int, horizon: int, methods: tuple[str, ...], reasons: list[str | None]) -> ForecastBatch:
    """Return the record of n series of which no method is known to forecast them, without forecasts."""
    unknown = np.full((len(methods), n), np.nan)
    return ForecastBatch(
        quantiles=np.full((len(QUANTILES), n, horizon), np.nan),
        methods=methods,
        method=[fallback.NAME] * n,
        reason=reasons,
        champion=np.full(n, -1, np.int64),
        origins=np.zeros((len(methods), n), np.int64),
        mase=unknown,
        pinball_q90=unknown,
        coverage_q90=unknown,
    )


def join_batches(batch: ForecastBatch, part: ForecastBatch, rows: Bools) -> ForecastBatch:
    """Return a batch with the forecasts and the record of some of its series, (n,), from another one."""
    places = {int(at): place for place, at in enumerate(np.flatnonzero(rows))}

    def put(whole: Any, ours: Any) -> Any:
        result = whole.copy()
        result[..., rows] = ours
        return result

    def pick(whole: list[T], ours: list[T]) -> list[T]:
        return [ours[places[at]] if at in places else one for at, one in enumerate(whole)]

    quantiles = batch.quantiles.copy()
    quantiles[:, rows] = part.quantiles
    return replace(
        batch,
        quantiles=quantiles,
        method=pick(batch.method, part.method),
        reason=pick(batch.reason, part.reason),
        champion=put(batch.champion, part.champion),
        origins=put(batch.origins, part.origins),
        mase=put(batch.mase, part.mase),
        pinball_q90=put(batch.pinball_q90, part.pinball_q90),
        coverage_q90=put(batch.coverage_q90, part.coverage_q90),
    )
