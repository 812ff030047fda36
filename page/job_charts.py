"""The charts of a job: what ran beside what was forecast, and what is planned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fleet.bands import Band
from fleet.facts import JobStatus
from fleet.fleet_reader import FleetReader
from fleet.loads import LoadFact
from include.lake_table import timestamp_of
from include.utc import DAY_S
from models.control.case import SENDS
from page.charts import Area, Chart, Line, Point
from page.source import LakeSnapshot


def draw_charts(
    reader: FleetReader, look: LakeSnapshot, facts: JobStatus, hours: int, log: Sequence[Mapping[str, Any]]
) -> tuple[Chart, ...]:
    """Return the charts of a job: load, slots, busy share and age of the backlog.

    ``log`` has rows of :data:`fleet.log_tables.LIGHT` of the job, in their order.
    """
    cluster, job = facts.cluster, facts.job
    now_s = look.facts.at_s
    since_s, until_s = now_s - 3600.0 * hours, now_s + min(3600.0 * hours, DAY_S)
    since, until, now = map(timestamp_of, (since_s, until_s, now_s))
    bands = reader.recent.read_bands(cluster, job, since, now, until)
    ran = reader.recent.read_loads(cluster, job, since, now)
    sent = [row["at"].timestamp() for row in log if row["verb"] in SENDS and row["answer"] and not row["is_dry_run"]]
    plan = [row for row in look.plans.get((cluster, job), ()) if row.effective_at_s is not None]
    planned = [(row.effective_at_s or 0.0, row.valid_until_s or until_s, row) for row in plan]
    known_s = max([now_s, *(end for _, end, _ in planned), *(one.at_s + one.length_s for one in bands)])
    chart = partial(Chart, since_s=since_s, until_s=min(until_s, known_s), now_s=now_s, marks=sent)
    capacity = [
        (begin, end, row.expected_capacity_lower_per_s, row.expected_capacity_upper_per_s)
        for begin, end, row in planned
        if row.expected_capacity_lower_per_s is not None and row.expected_capacity_upper_per_s is not None
    ]
    load = chart(
        "Load, records/s",
        unit="/s",
        areas=(
            Area("forecast, 10% to 90%", "forecast", _spans_of(bands)),
            Area("planned capacity", "capacity", capacity),
        ),
        lines=(
            Line("planned capacity, expected", "sustained", _steps_of(planned, now_s), is_steps=True),
            Line("forecast, median", "median", [(one.at_s, one.q50_per_s) for one in bands]),
            Line("load", "load", [(one.at_s, one.load_per_s) for one in ran]),
        ),
    )
    slots = chart(
        "Slots",
        lines=(
            Line("ran", "ran", _slots_that_ran(ran, log, since_s, now_s, facts.slots_now), is_steps=True),
            Line("planned", "planned", _slots_planned(planned, facts.slots_now, now_s), is_steps=True),
        ),
    )
    busy = chart(
        "Busy share of the busiest operator, %",
        unit="%",
        top=100.0,
        lines=(Line("busy", "load", [(one.at_s, _percent(one.busy_share)) for one in ran]),),
    )
    lag = chart(
        "Age of the backlog, s",
        unit=" s",
        lines=(Line("age of the backlog", "late", [(one.at_s, one.lag_s) for one in ran]),),
    )
    return load, slots, busy, lag


def _spans_of(bands: Sequence[Band]) -> list[tuple[float, float, float, float]]:
    return [(one.at_s, one.at_s + one.length_s, one.q10_per_s, one.q90_per_s) for one in bands]


def _slots_that_ran(
    ran: Sequence[LoadFact], log: Sequence[Mapping[str, Any]], since_s: float, now_s: float, slots_now: int | None
) -> list[Point]:
    """Return the slots of the windows, and of decisions outside of them: each notes what ran."""
    measured = [(one.at_s, None if one.slots is None else float(one.slots)) for one in ran]
    first_s, last_s = (ran[0].at_s, ran[-1].until_s) if ran else (math.inf, -math.inf)
    noted: list[Point] = []
    before: Point | None = None
    for row in log:
        at_s = row["at"].timestamp()
        if row["slots_from"] is None or at_s > now_s or first_s <= at_s < last_s:
            continue
        if at_s < since_s:
            before = (since_s, float(row["slots_from"]))
        else:
            noted.append((at_s, float(row["slots_from"])))
    last = float(slots_now) if slots_now is not None else None
    points = sorted([*([before] if before else []), *measured, *noted], key=lambda point: point[0])
    changes = [one for place, one in enumerate(points) if not place or one[1] != points[place - 1][1]]
    return [*changes, (now_s, last)]


def _slots_planned(planned: Sequence[tuple[float, float, Any]], slots_now: int | None, now_s: float) -> list[Point]:
    points: list[Point] = []
    if planned and slots_now is not None and planned[0][0] > now_s:
        points.append((now_s, float(slots_now)))
    for begin, end, row in planned:
        if row.slots is not None and end > now_s:
            points += [(max(begin, now_s), float(row.slots)), (end, float(row.slots))]
    return points


def _steps_of(planned: Sequence[tuple[float, float, Any]], now_s: float) -> list[Point]:
    points: list[Point] = []
    for begin, end, row in planned:
        if row.expected_capacity_per_s is not None and end > now_s:
            points += [(max(begin, now_s), row.expected_capacity_per_s), (end, row.expected_capacity_per_s)]
    return points


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
