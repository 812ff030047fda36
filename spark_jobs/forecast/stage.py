"""Forecast stage: the rates of sources -> quantiles per bin in ``gold.forecasts``, record of the methods in
``gold.forecast_scores``.

Series travel as one row of arrays each, in a bounded number of batches: a batch is forecast by vectorised arithmetic.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.settings import Settings
from include.stage_request import StageRequest
from models.forecasting import Calendar
from models.forecasting.boosting import load_lightgbm
from spark_jobs.forecast.current_sources import read_current_sources
from spark_jobs.forecast.forecast_sources import forecast_sources, write_forecasts
from spark_jobs.forecast.series import ForecastTask
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.renames import current_names, read_versions

load_lightgbm()  # here, while Java starts: the fit would wait for it


def forecast_task(settings: Settings, request: StageRequest) -> ForecastTask:
    """Return the frame of a forecast: history up to the last full bin before ``as_of``, horizon from there."""
    wanted = settings.forecast
    calendar = Calendar(0, wanted.bin_s)
    as_of_s = request.as_of.timestamp()
    history_bins = wanted.history_days * calendar.day
    start_s = int(as_of_s // wanted.bin_s) * wanted.bin_s
    return ForecastTask(
        as_of_s=as_of_s,
        first_bin_s=start_s - history_bins * wanted.bin_s,
        bin_s=wanted.bin_s,
        history_bins=history_bins,
        horizon_bins=calendar.bins(wanted.horizon_h * 3600),
        backtest_origins=wanted.backtest_origins,
        champion_margin=wanted.champion_margin,
        stale_after_s=settings.planner.max_input_age_h * 3600,
        time_zones=dict(sorted(wanted.time_zones.items())),
        holidays={name: tuple(sorted(map(str, days))) for name, days in sorted(wanted.holidays.items())},
        events=dict(sorted(settings.events.items())),
    )


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Forecast every source of the history; replaces the forecasts of the same ``as_of``.

    Raises:
        LostInputError: forecasts of that time are there, and there is no history of any source any more.
    """
    lake, task = Lake(spark, settings.paths.lake), forecast_task(settings, request)
    names = current_names(read_versions(lake, datetime.fromtimestamp(task.first_bin_s, UTC), request.as_of))
    made = forecast_sources(lake, names, read_current_sources(lake, request.as_of), task, request)
    return write_forecasts(lake, made, task, request)
