"""The batches that series are forecast in, the order of a sample of them, and the sources that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from models.arrays import Ints
from models.forecasting.boosting import Fit
from spark_jobs.forecast.series import RESULT_COLUMNS, ForecastTask, load_worker, make_forecaster
from spark_jobs.lake import frame_of, rows_of
from spark_jobs.source_inputs.current_sources import JobName
from spark_jobs.source_inputs.source_windows import SERIES

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
CHAMPION_MEMORY = timedelta(days=7)
"""A champion not confirmed for this long is dropped."""
_JOB = ["cluster", "job"]
_SOURCES = {"cluster": "STRING", "job": "STRING", "sources": "ARRAY<STRING>"}


def keep_current(series: DataFrame, sources: Mapping[JobName, frozenset[str]]) -> DataFrame:
    """Leave out series that are no source to forecast; see :func:`.current_sources.is_current`."""
    rows = [{"cluster": job[0], "job": job[1], "sources": sorted(own)} for job, own in sources.items()]
    joined = series.join(F.broadcast(rows_of(series.sparkSession, _SOURCES, rows)), _JOB, how="left")
    current = F.col("sources").isNull() | F.array_contains("sources", F.col("operator"))
    return joined.where(current).select(*series.columns)


def hash_names() -> Column:
    """Return the hash of a series' names, by which it is dealt into a batch and drawn for the sample."""
    return F.xxhash64(*SERIES)


def read_hashes(spark: SparkSession, series: pa.Table) -> Ints:
    """Return :func:`hash_names` of few series, without a job of Spark, shape (n,)."""
    rows = frame_of(spark, series.select(list(SERIES))).select(hash_names()).collect() if len(series) else []
    return np.array([row[0] for row in rows], np.int64)


def sample_order() -> list[Column]:
    """Return the order of series of which the first are a sample: by the hash of their names."""
    return [hash_names(), *(F.col(name) for name in SERIES)]


def start_workers(spark: SparkSession) -> None:
    """Begin a Python worker for each core, which loads what forecasts need, by a job of no other use.

    To be called while the driver reads: it takes a second that the forecasts would wait for, and Spark's own first
    query of this kind another one.
    """
    count = min(spark.sparkContext.defaultParallelism, BATCHES)
    spark.range(0, count, 1, count).mapInArrow(load_worker, "id BIGINT").toArrow()  # type: ignore[arg-type]


def forecast_series(series: DataFrame, task: ForecastTask, partitions: int, fits: tuple[Fit, ...] = ()) -> DataFrame:
    """Forecast every series; one row each, arrays over the bins of the horizon and over the methods.

    Args:
        series: with their bins or windows and ``previous_champion``, see :func:`.series.forecast_chunk`.
        task: what to forecast.
        partitions: of Spark.
        fits: of the global model.
    """
    schema = ", ".join(f"{name} {kind}" for name, kind in RESULT_COLUMNS.items())
    return (
        series.select("*", F.pmod(hash_names(), F.lit(BATCHES)).alias("batch"))
        .repartition(partitions, "batch")
        .groupBy("batch")
        .applyInPandas(make_forecaster(task, fits), schema)  # type: ignore[arg-type]
    )
