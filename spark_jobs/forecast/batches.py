"""Forecasts of series by Spark, in a bounded number of batches, and what both ways to read and write them share."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from models.forecasting.boosting import Fit
from spark_jobs.forecast.series import RESULT_SCHEMA, ForecastTask, make_forecaster
from spark_jobs.job_inputs.newest_rows import JOB, current_sources
from spark_jobs.job_inputs.source_series import SERIES

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
CHAMPION_MEMORY = timedelta(days=7)
"""A champion not confirmed for this long is dropped."""


def keep_current(series: DataFrame, graphs: DataFrame, jobs: DataFrame, as_of: datetime) -> DataFrame:
    """Leave out sources that their job's newest graph no longer has, or that have ended.

    A job without a recent graph keeps all of them.
    """
    joined = series.join(F.broadcast(current_sources(graphs, jobs, as_of)), JOB, how="left")
    current = F.col("sources").isNull() | F.array_contains("sources", F.col("operator"))
    return joined.where(current).select(*series.columns)


def sample_order() -> list[Column]:
    """Return the order of series of which the first are a sample: by a hash of their names."""
    return [F.xxhash64(*SERIES), *(F.col(name) for name in SERIES)]


def forecast_series(series: DataFrame, task: ForecastTask, partitions: int, fits: tuple[Fit, ...] = ()) -> DataFrame:
    """Forecast every series; one row each, arrays over the bins of the horizon and over the methods.

    Args:
        series: with their bins or windows and ``previous_champion``, see :func:`.series.forecast_chunk`.
        task: what to forecast.
        partitions: of Spark.
        fits: of the global model.
    """
    batch = F.pmod(F.xxhash64(*SERIES), F.lit(BATCHES)).alias("batch")
    return (
        series.select("*", batch)
        .repartition(partitions, "batch")
        .groupBy("batch")
        .applyInPandas(make_forecaster(task, fits), RESULT_SCHEMA)  # type: ignore[arg-type]
    )
