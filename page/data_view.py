"""The view of data and models: the newest ingestion, what was refused, trainings, and who makes the forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

from fleet.fleet_reader import FleetReader
from fleet.small_tables import select_newest_scores
from include.lake_table import timestamp_of
from include.tables import FORECAST_SCORES

REFUSED_DAYS, TRAININGS, SERIES = 7, 10, 200
_READ_LINES = 20_000


@dataclass(frozen=True, slots=True)
class RefusedLines:
    """Lines of one cluster that were quarantined for one reason."""

    cluster: str
    reason: str
    lines: int
    example: str


@dataclass(frozen=True, slots=True)
class DataPage:
    """All that the page shows; rows of the tables that they are named after."""

    ingestions: tuple[Mapping[str, Any], ...]
    refused: tuple[RefusedLines, ...]
    refused_total: int
    trainings: tuple[Mapping[str, Any], ...]
    series: tuple[Mapping[str, Any], ...]
    more_series: int


def read_data(reader: FleetReader, now_s: float) -> DataPage:
    """Return the view at a time, epoch seconds."""
    now = timestamp_of(now_s)
    newest: dict[str, Mapping[str, Any]] = {}
    for row in reader.tables.read_quality():
        if row["interval_end"] <= now:
            newest[row["cluster"]] = row
    lines, total = reader.tables.read_quarantine(now - timedelta(days=REFUSED_DAYS), now, _READ_LINES)
    counts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in lines:
        counts.setdefault((row["cluster"] or "", row["reason"]), []).append(row)
    refused = [
        RefusedLines(cluster, reason, len(rows), str(rows[-1]["detail"] or "")[:160])
        for (cluster, reason), rows in counts.items()
    ]
    trainings = [row for row in reader.tables.read_models() if row["as_of"] <= now]
    scored = chain.from_iterable(reader.tables.read_last(FORECAST_SCORES, now_s).values())
    champions = [row for row in select_newest_scores(scored, now_s) if row["champion"]]
    series = sorted(champions, key=lambda row: -(row["mase"] or 0.0))
    return DataPage(
        ingestions=tuple(newest[name] for name in sorted(newest)),
        refused=tuple(sorted(refused, key=lambda one: (one.cluster, -one.lines))),
        refused_total=total,
        trainings=tuple(trainings[::-1][:TRAININGS]),
        series=tuple(series[:SERIES]),
        more_series=max(len(series) - SERIES, 0),
    )
