"""The forecasts of a replay that begins in the middle of a history."""

from __future__ import annotations

from collections.abc import Sequence

from include.settings import Forecast
from models.evaluation.forecasts import Forecasts
from models.forecasting.batch import default_registry
from models.simulation.spec import FloatArray


def later_forecasts(
    sources: Sequence[str], start_s: int, rates_per_s: FloatArray, *, begin: int, every_s: int, options: Forecast
) -> Forecasts:
    """Return what the hourly forecasts said from some bin on, each from nothing but the bins before it.

    Deviation: without the global model, which would be fitted anew for every day and source and take a third of the
    time of a backtest; the other methods compete and are calibrated as in the forecast stage.

    Args:
        sources: (S,) names.
        start_s: epoch seconds of the first bin.
        rates_per_s: (T, S) mean rate of each bin.
        begin: the first bin from which a forecast is wanted.
        every_s: origins are whole multiples of it, epoch seconds.
        options: of the forecast stage; ``bin_s`` is that of the rates.
    """
    return Forecasts(sources, start_s, rates_per_s, every_s, options, begin, default_registry())
