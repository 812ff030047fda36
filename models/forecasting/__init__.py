"""Forecasts of source rates: many series at once, with calibrated quantiles and a champion per series."""

from models.forecasting.batch import ForecastSettings, default_registry, forecast_batch
from models.forecasting.batch_record import ForecastBatch
from models.forecasting.calendar import Calendar
from models.forecasting.contest import QUANTILES

__all__ = [
    "QUANTILES",
    "Calendar",
    "ForecastBatch",
    "ForecastSettings",
    "default_registry",
    "forecast_batch",
]
