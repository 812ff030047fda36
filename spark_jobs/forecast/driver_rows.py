"""Rows of a forecast in the driver: those that it chooses, writes and counts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.arrow_rows import arrow_schema
from include.tables import FORECAST_SCORES, FORECASTS, Table
from models.arrays import Ints
from spark_jobs.forecast.series import ForecastTask
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.source_rates import SourceName
from spark_jobs.source_inputs.source_windows import SERIES

_QUANTILES = ("q10", "q50", "q90", "q95")
_OF_EVENTS = ("event", "event_factor", "event_spread")
_SCORES = ("mase", "pinball_q90", "coverage_q90")


def take_series(sources: pa.Table, names: Sequence[SourceName]) -> pa.Table:
    """Return the rows of some sources, in the order of their names."""
    place = {name: row for row, name in enumerate(_keys(sources))}
    return sources.take(pa.array([place[name] for name in names], pa.int64()))


def add_champions(sources: pa.Table, lake: Lake, as_of: datetime, memory: timedelta) -> pa.Table:
    """Return the sources with ``previous_champion``: the newest that was recorded before, null without one.

    And with ``is_chosen``: whether that was on the date of ``as_of``.
    """
    where = f"champion AND as_of < '{as_of.isoformat()}'"
    columns = [*SERIES, "as_of", "date", "method"]
    rows = lake.few(FORECAST_SCORES).read(columns, (as_of - memory).date(), as_of.date(), where).sort_by("as_of")
    lasts = [("method", "last"), ("date", "last")]
    newest = rows.group_by(list(SERIES), use_threads=False).aggregate(lasts)
    lists = (newest["method_last"].to_pylist(), newest["date_last"].to_pylist())
    champions = dict(zip(_keys(newest), zip(*lists, strict=True), strict=True))
    own = [champions.get(name, (None, None)) for name in _keys(sources)]
    whole = sources.append_column("previous_champion", pa.array([method for method, _ in own], pa.string()))
    return whole.append_column("is_chosen", pa.array([date == as_of.date() for _, date in own], pa.bool_()))


def _keys(rows: pa.Table) -> list[SourceName]:
    return list(zip(*(rows[name].to_pylist() for name in SERIES), strict=True))


def is_usable(made: pa.Table) -> pa.Array:
    """Return of each series whether it had any rate to start from."""
    middle = made["q50"].combine_chunks()
    known = np.isfinite(middle.flatten().to_numpy(zero_copy_only=False))
    count = np.diff(middle.offsets.to_numpy())
    return pa.array(np.bincount(np.repeat(np.arange(len(made)), count), weights=known, minlength=len(made)) > 0)


def hash_forecast(made: pa.Table, task: ForecastTask) -> str:
    """Return the hash of all inputs and settings of a forecast: equal input, equal version."""
    lines = ["|".join(row) for row in zip(*(made[name].to_pylist() for name in (*SERIES, "input_hash")), strict=True)]
    inputs = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    return hashlib.sha256(f"{task.version_text}\n{inputs}".encode()).hexdigest()[:16]


def list_forecasts(known: pa.Table, task: ForecastTask, version: str) -> pa.Table:
    """Return the rows of gold.forecasts of series that have one: one per series and bin."""
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


def list_scores(known: pa.Table, task: ForecastTask) -> pa.Table:
    """Return the rows of gold.forecast_scores: one per series and method that was scored."""
    count = np.diff(known["methods"].combine_chunks().offsets.to_numpy()) if len(known) else np.zeros(0, np.int64)
    columns = _repeat(known, SERIES, count)
    columns |= {"method": _flatten(known, "methods")}
    columns |= {name: _flatten(known, name) for name in ("origins", *_SCORES, "champion")}
    columns |= {name: _select(pc.invert(pc.is_nan(columns[name])), columns[name]) for name in _SCORES}
    rows = _table(FORECAST_SCORES, columns, task)
    return rows.filter(pc.greater(rows["origins"], 0))


def count_series(made: pa.Table) -> dict[str, object]:
    """Count series: forecast, fallen back, stale, without any usable rate, with a contest of methods, and by method."""
    usable, reasons = is_usable(made).to_pylist(), made["fallback_reason"].to_pylist()
    return {
        "forecasts": sum(usable),
        "fallbacks": sum(is_known and reason is not None for is_known, reason in zip(usable, reasons, strict=True)),
        "stale": sum("stale: " in (reason or "") for reason in reasons),
        "unusable": len(usable) - sum(usable),
        "contests": sum(any(origins) for origins in made["origins"].to_pylist()),
        "methods": dict(sorted(Counter(made["method"].to_pylist()).items())),
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
