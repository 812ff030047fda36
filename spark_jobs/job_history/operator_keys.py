"""silver.operator_keys: the operators of each job whenever they changed, so that its history outlives their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, time, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

_JOB_HOUR = ("cluster", "job", "date", "hour", "job_id")
_OPERATOR = ("operator", "vertex_id", "position", "upstream")
_Row = Mapping[str, Any]


def build_operator_keys(graphs: Iterable[_Row]) -> list[dict[str, Any]]:
    """Return the graphs of the first hour of each day, and those that are other than the graph before.

    The graph before is of the same hour (another id of a job that was submitted again) or of the hour before it.  So
    what a row says depends on two hours alone, and every day can be read for itself. Graphs are of the hours to write
    and the one before.
    """
    ordered = sorted(graphs, key=lambda row: (*(row[name] for name in _JOB_HOUR), row["position"]))
    hourly = [list(rows) for _, rows in groupby(ordered, key=itemgetter(*_JOB_HOUR))]
    hourly.sort(key=lambda rows: (*(rows[0][name] for name in _JOB_HOUR[:-1]), _seen_at(rows), rows[0]["job_id"]))
    shown = [rows for before, rows in pairwise([None, *hourly]) if rows and _is_shown(before, rows)]
    return [{**row, "observed_at": _seen_at(rows)} for rows in shown for row in rows]


def _is_shown(before: list[_Row] | None, rows: list[_Row]) -> bool:
    one = rows[0]
    if before is None or itemgetter("cluster", "job")(before[0]) != itemgetter("cluster", "job")(one):
        return True
    apart = _hour_of(one) - _hour_of(before[0])
    if one["hour"] == 0 and apart > timedelta(0):
        return True
    return apart > timedelta(hours=1) or [_operator(row) for row in before] != [_operator(row) for row in rows]


def _operator(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _OPERATOR)


def _hour_of(row: _Row) -> datetime:
    return datetime.combine(row["date"], time(row["hour"]))


def _seen_at(rows: Iterable[_Row]) -> datetime:
    times: list[datetime] = [row["observed_at"] for row in rows]
    return max(times)
