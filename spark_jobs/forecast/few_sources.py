"""A forecast of few sources: what it reads and writes goes through the driver, and Spark does the forecasts alone.

Where Spark opens, plans, shuffles and commits every table, a pass of 100 sources takes 64 s of processor time, and
34 s here. The rows are those of :mod:`.many_sources`, bit for bit.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from include import tables
from include.stages import StageRequest
from spark_jobs.forecast import driver_rows
from spark_jobs.forecast.batches import CHAMPION_MEMORY, SAMPLE_SERIES, forecast_series, keep_current, sample_order
from spark_jobs.forecast.series import ForecastTask, fit_global
from spark_jobs.job_inputs.source_rates import SourceRates
from spark_jobs.job_inputs.source_windows import RATES, SERIES
from spark_jobs.lake import Lake, empty, frame_of
from spark_jobs.timestamps import as_of_slice

_HISTORY = dict.fromkeys(SERIES, "STRING") | {
    **dict(zip(RATES, ("ARRAY<DOUBLE>", "DOUBLE"), strict=True)),
    "previous_champion": "STRING",
    "is_chosen": "BOOLEAN",
}
_SENT_BYTES = 16 * 2**20
"""Rates in one piece: what a frame of the driver holds is sent with its tasks, and one above 128 MiB is refused."""


def choose_current(
    lake: Lake, sources: SourceRates, graphs: DataFrame, jobs: DataFrame, request: StageRequest
) -> pa.Table:
    """Return the sources that are not left out, in the order in which the global model's sample is drawn."""
    rows = sources.table
    if not len(rows):
        return rows
    names = keep_current(frame_of(lake.spark, rows.select(list(SERIES))), graphs, jobs, request.as_of)
    return driver_rows.choose_sources(rows, names.orderBy(*sample_order()).toArrow())


def forecast_few(lake: Lake, sources: pa.Table, task: ForecastTask, request: StageRequest, partitions: int) -> pa.Table:
    """Forecast sources whose history is in the driver, in the order of their names."""
    fits = fit_global(sources.slice(0, SAMPLE_SERIES).to_pandas(), task) if len(sources) else ()
    whole = driver_rows.add_champions(sources, lake, request.as_of, CHAMPION_MEMORY)
    made = forecast_series(_send(lake, whole, task), task, partitions, fits).toArrow()
    return made.sort_by([(name, "ascending") for name in SERIES])


def _send(lake: Lake, sources: pa.Table, task: ForecastTask) -> DataFrame:
    """Return rows of the driver as a frame."""
    if not len(sources):
        return empty(lake.spark, _HISTORY)
    step = max(1, _SENT_BYTES // (8 * task.history_bins))
    return reduce(
        DataFrame.union, [frame_of(lake.spark, sources[at : at + step]) for at in range(0, len(sources), step)]
    )


def write_few(lake: Lake, made: pa.Table, task: ForecastTask, request: StageRequest) -> dict[str, object]:
    """Replace the rows of this ``as_of`` in both tables by those of few series, and count these."""
    where = as_of_slice(request.as_of)
    if not len(made):
        lake.require_empty(tables.FORECASTS, where)
    known = made.filter(driver_rows.is_usable(made))
    version = driver_rows.hash_forecast(made, task)
    lake.few(tables.FORECASTS).replace(driver_rows.list_forecasts(known, task, version), where)
    lake.few(tables.FORECAST_SCORES).replace(driver_rows.list_scores(known, task), where)
    return driver_rows.count_series(made)
