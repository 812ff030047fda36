"""What a forecast reads of series in the driver: their rates in order, and the champions of before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from include.tables import FORECAST_SCORES
from spark_jobs.lake import Lake
from spark_jobs.source_inputs.source_rates import SourceName
from spark_jobs.source_inputs.source_windows import SERIES


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
