"""Rows of forecasts that workers made: those of the tables, and what the driver needs of each series.

Loaded by the workers: without Spark and the lake.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_schema
from include.tables import FORECAST_SCORES, FORECASTS, Table
from models.arrays import Ints
from spark_jobs.forecast.series import ForecastTask
from spark_jobs.source_inputs.source_windows import SERIES

_QUANTILES = ("q10", "q50", "q90", "q95")
_OF_EVENTS = ("event", "event_factor", "event_spread")
_SCORES = ("mase", "pinball_q90", "coverage_q90")
KEY_COLUMNS = {
    **dict.fromkeys((*SERIES, "method", "fallback_reason", "input_hash"), "STRING"),
    **dict.fromkeys(("usable", "contested"), "BOOLEAN"),
}
"""Of a series: column -> type, as SQL."""


def list_keys(made: pa.Table) -> pa.Table:
    """Return a row of :data:`KEY_COLUMNS` for each series: ``contested`` says that there was a contest of methods."""
    contested = pa.array([any(origins) for origins in made["origins"].to_pylist()], pa.bool_())
    whole = made.append_column("usable", is_usable(made)).append_column("contested", contested)
    return whole.select(list(KEY_COLUMNS))


def is_usable(made: pa.Table) -> pa.Array:
    """Return of each series whether it had any rate to start from."""
    middle = made["q50"].combine_chunks()
    known = np.isfinite(middle.flatten().to_numpy(zero_copy_only=False))
    count = np.diff(middle.offsets.to_numpy())
    return pa.array(np.bincount(np.repeat(np.arange(len(made)), count), weights=known, minlength=len(made)) > 0)


def hash_forecast(keys: pa.Table, task: ForecastTask) -> str:
    """Return the hash of all inputs and settings of a forecast: equal input, equal version."""
    lines = ["|".join(row) for row in zip(*(keys[name].to_pylist() for name in (*SERIES, "input_hash")), strict=True)]
    inputs = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return hashlib.sha256(f"{task.version_text}\n{inputs}".encode()).hexdigest()[:16]


def list_forecasts(made: pa.Table, task: ForecastTask, version: str) -> pa.Table:
    """Return the rows of gold.forecasts of series that have one: one per series and bin."""
    known = made.filter(is_usable(made))
    steps = np.tile(np.arange(task.horizon_bins), len(known))
    start_us = pa.array((round(task.now_s) + steps * task.bin_s) * 1_000_000)
    columns = _repeat(known, [*SERIES, "method", "fallback_reason"], np.full(len(known), task.horizon_bins))
    columns |= {f"{name}_per_s": _flatten(known, name) for name in _QUANTILES}
    event, factor, spread = (_flatten(known, name) for name in _OF_EVENTS)
    has_event = pc.is_valid(event)
    columns |= {"event": event, "event_factor": _select(has_event, factor), "event_spread": _select(has_event, spread)}
    columns |= {"bin_start": start_us.cast(pa.timestamp("us", "UTC")), "bin_s": pa.array([task.bin_s] * len(steps))}
    columns["forecast_version"] = pa.array([version] * len(steps), pa.string())
    return _table(FORECASTS, columns, task)


def list_scores(made: pa.Table, task: ForecastTask) -> pa.Table:
    """Return the rows of gold.forecast_scores: one per series that has a forecast, and method that was scored."""
    known = made.filter(is_usable(made))
    count = np.diff(known["methods"].combine_chunks().offsets.to_numpy()) if len(known) else np.zeros(0, np.int64)
    columns = _repeat(known, SERIES, count)
    columns |= {"method": _flatten(known, "methods")}
    columns |= {name: _flatten(known, name) for name in ("origins", *_SCORES, "champion")}
    columns |= {name: _select(pc.invert(pc.is_nan(columns[name])), columns[name]) for name in _SCORES}
    rows = _table(FORECAST_SCORES, columns, task)
    return rows.filter(pc.greater(rows["origins"], 0))


def count_series(keys: pa.Table) -> dict[str, object]:
    """Count series: forecast, fallen back, stale, without any usable rate, with a contest of methods, and by method."""
    usable, reasons = keys["usable"].to_pylist(), keys["fallback_reason"].to_pylist()
    return {
        "forecasts": sum(usable),
        "fallbacks": sum(is_known and reason is not None for is_known, reason in zip(usable, reasons, strict=True)),
        "stale": sum("stale: " in (reason or "") for reason in reasons),
        "unusable": len(usable) - sum(usable),
        "contests": sum(keys["contested"].to_pylist()),
        "methods": dict(sorted(Counter(keys["method"].to_pylist()).items())),
    }


def _flatten(rows: pa.Table, name: str) -> pa.Array:
    return rows[name].combine_chunks().flatten()


def _repeat(rows: pa.Table, names: Sequence[str], count: Ints) -> dict[str, pa.Array]:
    """Return columns whose values are repeated so many times each."""
    place = pa.array(np.repeat(np.arange(len(rows)), count))
    return {name: rows[name].combine_chunks().take(place) for name in names}


def _select(chosen: pa.Array, values: pa.Array) -> pa.Array:
    """Return values, null where they are not chosen."""
    return pc.if_else(chosen, values, pa.scalar(None, values.type))


def _table(table: Table, columns: dict[str, pa.Array], task: ForecastTask) -> pa.Table:
    as_of_us = np.full(len(columns["cluster"]), round(task.as_of_s * 1e6))
    as_of = pa.array(as_of_us).cast(pa.timestamp("us", "UTC"))
    columns |= {"as_of": as_of, "date": as_of.cast(pa.date32())}
    return pa.table({name: columns[name] for name in table.columns}).cast(arrow_schema(table))
