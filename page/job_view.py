"""The view of one job: what it is at, what ran and is planned beside forecasts, its rescales, limits, and acts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fleet.acts.undo import check_not_held, list_undo_warnings, read_undoable
from fleet.bands import Band
from fleet.explanation import Explanation, explain, outcome_of
from fleet.facts import JobFacts, OutcomeFact
from fleet.fleet_reader import FleetReader
from fleet.history import HistoryLine, line_of_act, select_acts
from fleet.loads import LoadFact
from fleet.log_tables import rows_of_job
from fleet.small_tables import select_newest
from fleet.undoable import NothingToUndoError, Undoable
from fleet.waiting import Block, find_blocks
from include.control.approvals import WaitingStep
from include.control.pins import PersonalPin, find_pin
from include.lake_table import timestamp_of
from include.orchestration.waiting_steps import find_waiting
from include.settings import Settings
from include.utc import DAY_S
from models.control.case import SENDS
from page.charts import Area, Chart, Line, Point
from page.curves import Curve
from page.fleet_view import JobLine, line_of
from page.money import Price, price_of
from page.shortfall import SlotPrice, describe_standing, slot_price_of
from page.shown_names import names_of
from page.source import Look

HOURS = (6, 24, 72, 168)
"""So far back a job may be shown; ahead at most a day."""
RESCALES, ACTS, RESULTS, DECISIONS = 20, 20, 12, 40
RAN_DAYS = 3


@dataclass(frozen=True, slots=True)
class RescaleLine:
    """A request that was sent, or a dry run of one."""

    at_s: float
    verb: str
    reason: str
    detail: str
    answer: str
    is_dry_run: bool
    slots_from: int | None
    slots_to: int | None
    outcome: OutcomeFact | None


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit in force: its value, and which part of the settings has it."""

    name: str
    value: str
    level: str


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """A decision on a job, or several of the same kind one after the other; texts are those of the last."""

    at_s: float
    until_s: float
    verb: str
    reason: str
    step_id: str
    detail: str
    answer: str
    is_dry_run: bool
    times: int = 1


@dataclass(frozen=True, slots=True)
class RanLately:
    """How a job ran on the last dates.

    Attributes:
        seconds: that were measured.
        slot_hours, late_minutes, rescales, restarts: in that time, and not a day; lateness None where nobody tells it.
        due, as_planned: steps of plans.
    """

    seconds: float
    slot_hours: float
    late_minutes: float | None
    rescales: int
    restarts: int
    due: int
    as_planned: int


@dataclass(frozen=True, slots=True)
class JobView:
    """All that the page shows of a job."""

    line: JobLine
    charts: tuple[Chart, ...]
    rescales: tuple[RescaleLine, ...]
    limits: tuple[LimitLine, ...]
    acts: tuple[HistoryLine, ...]
    explanation: Explanation | None
    undoable: Undoable | None
    undo_problem: str
    undo_warnings: tuple[str, ...]
    waiting: tuple[WaitingStep, ...]
    blocks: tuple[Block, ...]
    pin: PersonalPin | None
    results: tuple[Mapping[str, Any], ...]
    ran: RanLately | None
    policies: tuple[Mapping[str, Any], ...]
    decisions: tuple[DecisionLine, ...]
    curves: tuple[Curve, ...]
    price: Price | None
    slot_price: SlotPrice | None
    standing: str
    names: Mapping[str, str]


def read_view(
    reader: FleetReader,
    look: Look,
    cluster: str,
    job: str,
    *,
    hours: int,
    why_at: datetime | None,
    curves: Sequence[Curve] = (),
) -> JobView | None:
    """Return the view of a job; None where nobody knows it."""
    facts = next((one for one in look.facts.jobs if (one.cluster, one.job) == (cluster, job)), None)
    if facts is None:
        return None
    now_s, settings = look.facts.at_s, look.settings
    undoable, problem = _find_undoable(reader, look, cluster, job)
    log = rows_of_job(reader.log.read_light(now_s), cluster, job).to_pylist()
    log.sort(key=lambda row: (row["lease_number"], row["entry"]))
    now = timestamp_of(now_s)
    return JobView(
        line=line_of(look, facts),
        charts=_draw(reader, look, facts, hours, log),
        rescales=tuple(list_rescales(log, reader.tables.read_outcomes(now_s), cluster, job)),
        limits=tuple(list_limits(settings, cluster, job)),
        acts=tuple(_list_acts(reader, cluster, job, now)),
        explanation=None if why_at is None else explain(reader, cluster, job, why_at),
        undoable=undoable,
        undo_problem=problem,
        undo_warnings=() if undoable is None else tuple(list_undo_warnings(settings, undoable, now_s)),
        waiting=tuple(read_waiting(reader, look, cluster, job)),
        blocks=tuple(read_blocks(reader, look, cluster, job)),
        pin=find_pin(reader.read_pins(now_s), cluster, job),
        results=tuple(list_results(reader.tables.read_results(now_s).get((cluster, job), ()), now)),
        ran=sum_days(reader.tables.read_days(now_s).get((cluster, job), ()), now),
        policies=tuple(list_policies(reader.tables.read_backtests(now_s).get((cluster, job), ()), now_s)),
        decisions=tuple(list_decisions(log, now_s)),
        curves=tuple(curves),
        price=price_of(settings),
        slot_price=slot_price_of(settings, cluster, job),
        standing=next((text for text in map(describe_standing, look.plans.get((cluster, job), ())) if text), ""),
        names=names_of(look.plans.get((cluster, job), ()), [one.operator for one in curves]),
    )


def read_waiting(reader: FleetReader, look: Look, cluster: str, job: str) -> list[WaitingStep]:
    """Return the steps of a job that wait for a yes, as they are shown and answered."""
    ids = {one.what for one in look.facts.waiting if (one.cluster, one.job, one.kind) == (cluster, job, "approval")}
    row = reader.log.read_last(cluster, job) if ids else None
    waits = [] if row is None else find_waiting([row], look.settings, look.facts.at_s)
    return [one for one in waits if one.step_id in ids]


def read_blocks(reader: FleetReader, look: Look, cluster: str, job: str) -> list[Block]:
    """Return what of a job only a person lifts."""
    if not any((one.cluster, one.job) == (cluster, job) for one in look.facts.waiting if one.kind != "approval"):
        return []
    row = reader.log.read_last(cluster, job)
    lifted = [one.block_id for one in reader.read_lifted() if (one.cluster, one.job) == (cluster, job)]
    return [] if row is None else find_blocks(row, look.settings, lifted)


def list_rescales(
    log: Sequence[Mapping[str, Any]], judged: Iterable[Mapping[str, Any]], cluster: str, job: str
) -> list[RescaleLine]:
    """Return the requests of a job, the newest first; a request and its answer are one line.

    Args:
        log: rows of :data:`fleet.log_tables.LIGHT` of the job, in their order.
        judged: rows of ``gold.rescale_outcomes``.
        cluster: of the job.
        job: its name.
    """
    outcomes = {row["step_id"]: outcome_of(row) for row in judged if (row["cluster"], row["job"]) == (cluster, job)}
    lines: dict[tuple[str, str], RescaleLine] = {}
    for row in log:
        if row["verb"] not in SENDS:
            continue
        key = (row["verb"], row["step_id"] or str(row["entry"]))
        first = lines.get(key)
        lines[key] = RescaleLine(
            at_s=row["at"].timestamp() if first is None else first.at_s,
            verb=row["verb"],
            reason=row["reason"],
            detail=row["detail"] or "",
            answer=row["answer"] or "",
            is_dry_run=bool(row["is_dry_run"]),
            slots_from=row["slots_from"],
            slots_to=row["slots_to"],
            outcome=outcomes.get(row["step_id"]),
        )
    return sorted(lines.values(), key=lambda line: -line.at_s)[:RESCALES]


def list_results(rows: Iterable[Mapping[str, Any]], now: datetime) -> list[Mapping[str, Any]]:
    """Return the last results of a job's steps, the newest first."""
    mine = [row for row in rows if row["apply_at"] <= now]
    return sorted(mine, key=lambda row: row["apply_at"], reverse=True)[:RESULTS]


def sum_days(rows: Iterable[Mapping[str, Any]], now: datetime) -> RanLately | None:
    """Return how a job ran on the last dates; None where nobody has measured it."""
    mine = [row for row in rows if row["until"] <= now]
    mine = [row for row in sorted(mine, key=lambda row: row["date"])[-RAN_DAYS:] if row["measured_s"]]
    if not mine:
        return None
    known_s = sum(row["late_known_s"] or 0.0 for row in mine)
    return RanLately(
        seconds=sum(row["measured_s"] for row in mine),
        slot_hours=sum(row["slot_hours"] or 0.0 for row in mine),
        late_minutes=sum(row["late_minutes"] or 0.0 for row in mine) if known_s else None,
        rescales=sum(row["rescales"] or 0 for row in mine),
        restarts=sum(row["restarts"] or 0 for row in mine),
        due=sum(row["steps_due"] or 0 for row in mine),
        as_planned=sum(row["steps_as_planned"] or 0 for row in mine),
    )


def list_policies(rows: Iterable[Mapping[str, Any]], now_s: float) -> list[Mapping[str, Any]]:
    """Return what a job would have cost under each policy, the cheapest first and those that failed last."""
    newest = select_newest(rows, now_s)
    return sorted(newest, key=lambda row: (row["cost_vs_clairvoyant"] or math.inf, row["policy"]))


def list_decisions(log: Sequence[Mapping[str, Any]], now_s: float) -> list[DecisionLine]:
    """Return the decisions on a job within a day, the newest first; what was decided again and again is one line."""
    lines: list[DecisionLine] = []
    for row in log:
        at_s = row["at"].timestamp()
        if not now_s - DAY_S <= at_s <= now_s:
            continue
        same = (row["verb"], row["reason"], row["step_id"] or "")
        last = lines[-1] if lines else None
        if last is not None and (last.verb, last.reason, last.step_id) == same:
            times = last.times + (not row["answer"])
            last = replace(last, until_s=at_s, detail=row["detail"] or "", answer=row["answer"] or "", times=times)
            lines[-1] = last
        else:
            texts = (row["detail"] or "", row["answer"] or "")
            lines.append(DecisionLine(at_s, at_s, *same, *texts, bool(row["is_dry_run"])))
    return lines[::-1][:DECISIONS]


def list_limits(settings: Settings, cluster: str, job: str) -> list[LimitLine]:
    """Return the limits that are set, each with the part of the settings that it comes from: the strictest counts."""
    levels = {
        "limits": settings.limits,
        f"clusters.{cluster}.limits": settings.cluster(cluster).limits,
        f'limits.jobs."{cluster}/{job}"': settings.job_limits(cluster, job),
    }
    result = [LimitLine("mode in force", settings.mode_of(cluster, job), "the strictest of all")]
    for level, limits in levels.items():
        for name, value in limits.model_dump(exclude_none=True, exclude={"jobs"}).items():
            is_chosen = name in limits.model_fields_set
            if (is_chosen or level == "limits") and value not in ({}, (), False):
                shown = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, dict) else value
                result.append(LimitLine(name, str(shown), level if is_chosen else f"{level}, default"))
    return result


def _find_undoable(reader: FleetReader, look: Look, cluster: str, job: str) -> tuple[Undoable | None, str]:
    try:
        result = read_undoable(reader, cluster, job, look.facts.at_s)
        check_not_held(look.facts.holds, cluster, job)
    except NothingToUndoError as error:
        return None, str(error)
    return result, ""


def _list_acts(reader: FleetReader, cluster: str, job: str, now: datetime) -> list[HistoryLine]:
    rows = reader.tables.read_interventions(now - timedelta(days=14), now)
    mine = select_acts(rows, cluster, job)[-ACTS:]
    return [HistoryLine(row["at"], row["scope"], line_of_act(row), row["by"] or "") for row in reversed(mine)]


def _draw(
    reader: FleetReader, look: Look, facts: JobFacts, hours: int, log: Sequence[Mapping[str, Any]]
) -> tuple[Chart, ...]:
    cluster, job = facts.cluster, facts.job
    now_s = look.facts.at_s
    since_s, until_s = now_s - 3600.0 * hours, now_s + min(3600.0 * hours, DAY_S)
    since, until, now = map(timestamp_of, (since_s, until_s, now_s))
    bands = reader.recent.read_bands(cluster, job, since, now, until)
    ran = reader.recent.read_loads(cluster, job, since, now)
    sent = [row["at"].timestamp() for row in log if row["verb"] in SENDS and row["answer"] and not row["is_dry_run"]]
    plan = [row for row in look.plans.get((cluster, job), ()) if row.effective_at_s is not None]
    planned = [(row.effective_at_s or 0.0, row.valid_until_s or until_s, row) for row in plan]
    chart = partial(Chart, since_s=since_s, until_s=until_s, now_s=now_s, marks=sent)
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
    return [*points, (now_s, last)]


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
