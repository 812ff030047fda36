"""A forecast of all sources: their rates go to Spark part by part, which keeps and writes what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include import tables
from include.arrow_rows import arrow_columns, arrow_rows
from include.stage_request import StageRequest
from models.arrays import Ints
from models.forecasting.boosting import BoostingFit
from models.training.held_out import hash_texts
from spark_jobs.by_job import Job
from spark_jobs.forecast import forecast_rows
from spark_jobs.forecast.current_sources import is_current
from spark_jobs.forecast.series import (
    BATCH,
    KEYS,
    RESULT_COLUMNS,
    ForecastTask,
    fit_global,
    make_forecaster,
    make_worker,
)
from spark_jobs.lake import Lake, empty, keep, send_objects
from spark_jobs.packed_objects import COLUMNS, PACKED, collect_objects, map_to_rows
from spark_jobs.source_inputs.renames import OperatorName
from spark_jobs.source_inputs.source_rates import SourceName, list_sources, read_source_rates
from spark_jobs.source_inputs.source_windows import SERIES
from spark_jobs.timestamps import as_of_slice

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
CHAMPION_MEMORY = timedelta(days=7)
"""A champion not confirmed for this long is dropped."""
_HELD_BYTES = 256 * 2**20
"""Rates that the driver holds at once: of 4,161 sources with 28 days of five minutes."""
_SENT_BYTES = 32 * 2**20
"""Rates of a part: what a frame of the driver holds is sent with its tasks, and one above 128 MiB is refused."""
_CELLS = {**COLUMNS, KEYS: "BINARY"}


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts that workers made.

    Attributes:
        cells: frame of them, a row for each part.
        keys: a row of :data:`.forecast_rows.KEY_COLUMNS` for each series.
    """

    cells: DataFrame
    keys: pa.Table


def forecast_sources(
    lake: Lake,
    renamed: Mapping[OperatorName, str | None],
    current: Mapping[Job, frozenset[str]],
    task: ForecastTask,
    request: StageRequest,
) -> Forecasts:
    """Forecast the sources of a history, without those that are left out; the executors keep what they make."""
    measured = list_sources(lake.root, task, renamed, partial(lake.replace, tables.SOURCE_LOADS))
    names = [name for name in measured if is_current(current, *name)]
    hashes = np.array([hash_texts(name) for name in names], np.int64)
    order = sorted(range(len(names)), key=list(zip(hashes.tolist(), names, strict=True)).__getitem__)
    sample = [names[place] for place in order[:SAMPLE_SERIES]]
    made, fits = list[Forecasts](), tuple[BoostingFit, ...]()
    for count, batches in enumerate(group_batches(hashes, 8 * task.history_bins)):
        is_own = np.isin(hashes % BATCHES, list(batches))
        own = [names[place] for place in np.flatnonzero(is_own)]
        rates = read_source_rates(lake.root, task, renamed, own if count else [*own, *sample]).table
        if not count:
            fits = fit_global(take_series(rates, sample).to_pandas(), task)
        series = add_champions(take_series(rates, own), lake, request.as_of)
        parts = deal_series(series, hashes[is_own], lake.spark.sparkContext.defaultParallelism)
        made.append(forecast_parts(lake.spark, parts, task, fits))
    cells = [one.cells for one in made] or [empty(lake.spark, _CELLS)]
    keys = [arrow_columns(forecast_rows.KEY_COLUMNS).empty_table(), *(one.keys for one in made)]
    return Forecasts(reduce(DataFrame.union, cells), pa.concat_tables(keys))


def take_series(sources: pa.Table, names: Sequence[SourceName]) -> pa.Table:
    """Return the rows of some sources, in the order of their names."""
    place = {name: row for row, name in enumerate(_keys(sources))}
    return sources.take(pa.array([place[name] for name in names], pa.int64()))


def add_champions(sources: pa.Table, lake: Lake, as_of: datetime) -> pa.Table:
    """Return the sources with ``previous_champion``: the newest that was recorded before, null without one.

    And with ``is_chosen``: whether that was on the date of ``as_of``.
    """
    where = f"champion AND as_of < '{as_of.isoformat()}'"
    columns = [*SERIES, "as_of", "date", "method"]
    since = (as_of - CHAMPION_MEMORY).date()
    rows = lake.few(tables.FORECAST_SCORES).read(columns, since, as_of.date(), where).sort_by("as_of")
    lasts = [("method", "last"), ("date", "last")]
    newest = rows.group_by(list(SERIES), use_threads=False).aggregate(lasts)
    lists = (newest["method_last"].to_pylist(), newest["date_last"].to_pylist())
    champions = dict(zip(_keys(newest), zip(*lists, strict=True), strict=True))
    own = [champions.get(name, (None, None)) for name in _keys(sources)]
    whole = sources.append_column("previous_champion", pa.array([method for method, _ in own], pa.string()))
    return whole.append_column("is_chosen", pa.array([date == as_of.date() for _, date in own], pa.bool_()))


def _keys(rows: pa.Table) -> list[SourceName]:
    return list(zip(*(rows[name].to_pylist() for name in SERIES), strict=True))


def group_batches(hashes: Ints, series_bytes: int) -> Iterator[frozenset[int]]:
    """Yield the batches of series, by the hashes of their names, in groups whose rates the driver can hold."""
    sizes, group, held = np.bincount(hashes % BATCHES, minlength=BATCHES), set[int](), 0
    for batch in np.flatnonzero(sizes).tolist():
        if group and held + sizes[batch] * series_bytes > _HELD_BYTES:
            yield frozenset(group)
            group, held = set(), 0
        group.add(batch)
        held += sizes[batch] * series_bytes
    if group:
        yield frozenset(group)


def deal_series(series: pa.Table, hashes: Ints, least: int) -> list[pa.Table]:
    """Return series in parts of about the same size, of whole batches, which are those of Spark.

    A worker takes a fifth of a second to begin with a part, so there are no more of them than ``least``, which is one
    for each core, unless a part would be too large to be sent.
    """
    batch = hashes % BATCHES
    sizes = np.bincount(batch, minlength=BATCHES)
    count = max(1, least, -(-series.nbytes // _SENT_BYTES))
    parts: list[list[int]] = [[] for _ in range(min(count, BATCHES))]
    for one in np.argsort(-sizes, kind="stable").tolist():  # the largest first, each to the smallest part
        min(parts, key=lambda part: sizes[part].sum()).append(one)
    whole = series.append_column(BATCH, pa.array(batch))
    chosen = [np.flatnonzero(np.isin(batch, part)) for part in parts]
    return [whole.take(pa.array(rows)) for rows in chosen if len(rows)]


def forecast_parts(
    spark: SparkSession, parts: list[pa.Table], task: ForecastTask, fits: tuple[BoostingFit, ...]
) -> Forecasts:
    """Forecast parts of the series, one at least, each in a task of its own."""
    worker = make_worker(make_forecaster(task, fits), arrow_columns(RESULT_COLUMNS), forecast_rows.list_keys)
    cells = keep(map_to_rows(send_objects(spark, parts), worker, _CELLS))
    keys = collect_objects(cells.select(F.col(KEYS).alias(PACKED)))  # by a job that works on the parts
    return Forecasts(cells, pa.concat_tables(keys))


def write_forecasts(lake: Lake, made: Forecasts, task: ForecastTask, request: StageRequest) -> dict[str, object]:
    """Replace the rows of this ``as_of`` in both tables and count the series."""
    where, keys = as_of_slice(request.as_of), made.keys
    if not len(keys):
        lake.require_empty(tables.FORECASTS, where)
    listed = partial(forecast_rows.list_forecasts, task=task, version=forecast_rows.hash_forecast(keys, task))
    lake.replace(tables.FORECASTS, _list(made, listed, tables.FORECASTS.columns), where)
    result = forecast_rows.count_series(keys)
    scores = _list(made, partial(forecast_rows.list_scores, task=task), tables.FORECAST_SCORES.columns).coalesce(1)
    none = arrow_rows(tables.FORECAST_SCORES, [])
    lake.replace(tables.FORECAST_SCORES, scores if result["contests"] else none, where)
    return result


def _list(made: Forecasts, list_rows: Callable[[pa.Table], pa.Table], columns: Mapping[str, str]) -> DataFrame:
    return map_to_rows(
        made.cells, lambda parts: (one for part in parts for one in list_rows(part).to_batches()), columns
    )
