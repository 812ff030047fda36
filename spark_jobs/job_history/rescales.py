"""silver.rescales: each rescale and restart found in the data, with its downtime and its catch-up.

A job that stopped and runs again bears a new RUNNING time in its ``job`` replies; Flink seldom shows the stop itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from include.settings import Ingest
from include.utc import Interval, floor_hour
from spark_jobs.job_history.stop_effects import EFFECTS, StopSpans

_Row = Mapping[str, Any]
_EVENT_KEY = ("cluster", "job", "started_at")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS, _US = timedelta(milliseconds=1), timedelta(microseconds=1)


def find_spans(events: Iterable[_Row], rules: Ingest, hours: Interval) -> StopSpans:
    """Return in which time the effects of events that came to an end are looked for.

    Until ``late_allowance_h`` hours after the event's hour: so far do later runs look back.
    """
    spans: dict[tuple[str, str], list[tuple[int, int | None, int]]] = {}
    for one in events:
        if not one["is_open"]:
            last = floor_hour(one["started_at"]) + timedelta(hours=rules.late_allowance_h + 1)
            until = last if one["next_started_at"] is None else min(one["next_started_at"], last)
            running_ms = None if one["running_at"] is None else _to_ms(one["running_at"])
            span = _to_ms(one["started_at"]), running_ms, _to_ms(until)
            spans.setdefault((one["cluster"], one["job"]), []).append(span)
    return StopSpans(spans, _to_ms(hours.start), _to_ms(hours.end), rules.caught_up_lag_s)


def build_rescales(events: Iterable[_Row], effects: Iterable[_Row], earlier: Iterable[_Row]) -> list[dict[str, Any]]:
    """Return the rows of silver.rescales of events that came to an end.

    Of events that this run does not see whole, because they began before its hours or their catch-up goes beyond them,
    what was found earlier stands, and what was missing is filled in by the effects.
    """
    followed, known = ({_key_of(row): row for row in rows} for rows in (effects, earlier))
    closed = {_key_of(one): one for one in events if not one["is_open"]}
    return [_row_of(one, followed.get(key, {}), known.get(key, {})) for key, one in closed.items()]


def _row_of(event: _Row, own: _Row, known: _Row) -> dict[str, Any]:
    stands = {} if own.get("is_whole") else {name: known[name] for name in EFFECTS if known.get(name) is not None}
    effects = {name: own.get(name) for name in EFFECTS} | stands
    started_at = event["started_at"]
    return {
        **{name: event[name] for name in (*_EVENT_KEY, "job_id", "running_at", "kind", "cause", "cause_kind")},
        **effects,
        **{f"parallelism_{side}": _by_operator(event[f"vector_{side}"]) for side in ("before", "after")},
        "downtime_s": _seconds_between(started_at, event["running_at"]),
        "catch_up_s": _seconds_between(event["running_at"], effects["caught_up_at"]),
        "checkpoint_age_s": _seconds_between(event["checkpoint_at"], started_at),
        "state_size_bytes": event["state_size_bytes"],
        "flink_trigger": event["flink_trigger"],
        "date": started_at.date(),
        "hour": started_at.hour,
    }


def _key_of(row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _EVENT_KEY)


def _seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start) // _US / 1e6


def _by_operator(vector: Iterable[_Row] | None) -> dict[str, int] | None:
    """Return parallelism by operator."""
    return None if vector is None else {pair["operator"]: pair["parallelism"] for pair in vector}


def _to_ms(at: datetime) -> int:
    return (at - _EPOCH) // _MS
