"""The view of one job: what it is at, what ran and is planned beside forecasts, its rescales, limits, and acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleet.acts.undo import check_not_held, list_undo_warnings, read_undoable
from fleet.explanation import Explanation, explain
from fleet.facts import HealthFact
from fleet.fleet_reader import FleetReader
from fleet.frontier import Frontier, read_frontier
from fleet.health import Fault
from fleet.history import HistoryEntry, line_of_act, select_acts
from fleet.loads import LoadFact
from fleet.log_tables import rows_of_job
from fleet.undoable import NothingToUndoError, UndoableRescale
from fleet.waiting import Block, find_blocks
from include.control.approvals import WaitingStep
from include.control.pins import PersonalPin, find_pin
from include.lake_table import timestamp_of
from include.orchestration.waiting_steps import find_waiting
from include.place import place
from include.settings.planner import RECOVERS
from include.tables import BACKTESTS, JOB_DAYS, STEP_RESULTS
from include.utc import HOUR_S
from page.charts import Chart
from page.curves import Curve
from page.fleet_view import JobRow, line_of
from page.job_charts import draw_charts
from page.job_lines import (
    DecisionRow,
    LimitRow,
    RecentDays,
    RescaleRow,
    list_decisions,
    list_limits,
    list_policies,
    list_rescales,
    list_results,
    sum_days,
)
from page.money import Price, price_of
from page.shortfall import describe_standing, slot_price_of
from page.shown_names import names_of
from page.source import LakeSnapshot

HOURS = (1, 6, 24, 72, 168)
"""So far back a job may be shown; ahead at most a day."""
USUAL_H = 24
ACTS = 20


@dataclass(frozen=True, slots=True)
class JobPage:
    """All that the page shows of a job."""

    line: JobRow
    hours: int
    charts: tuple[Chart, ...]
    rescales: tuple[RescaleRow, ...]
    limits: tuple[LimitRow, ...]
    acts: tuple[HistoryEntry, ...]
    explanation: Explanation | None
    undoable: UndoableRescale | None
    undo_problem: str
    undo_warnings: tuple[str, ...]
    waiting: tuple[WaitingStep, ...]
    blocks: tuple[Block, ...]
    pin: PersonalPin | None
    results: tuple[Mapping[str, Any], ...]
    ran: RecentDays | None
    policies: tuple[Mapping[str, Any], ...]
    decisions: tuple[DecisionRow, ...]
    curves: tuple[Curve, ...]
    price: Price | None
    slot_price: float | None
    standing: str
    names: Mapping[str, str]
    vertices: Mapping[str, str]
    job_id: str
    frontier: Frontier | None
    goal: str
    faults: tuple[HealthFact, ...]


def read_view(
    reader: FleetReader,
    look: LakeSnapshot,
    cluster: str,
    job: str,
    *,
    hours: int | None,
    why_at: datetime | None,
    curves: Sequence[Curve] = (),
) -> JobPage | None:
    """Return the view of a job; None where nobody knows it."""
    facts = next((one for one in look.facts.jobs if (one.cluster, one.job) == (cluster, job)), None)
    if facts is None:
        return None
    now_s, settings, plan = look.facts.at_s, look.settings, look.plans.get((cluster, job), ())
    undoable, problem = _find_undoable(reader, look, cluster, job)
    log = rows_of_job(reader.log.read_light(now_s), cluster, job).to_pylist()
    log.sort(key=lambda row: (row["lease_number"], row["entry"]))
    now = timestamp_of(now_s)
    if hours is None:
        hours = _choose_hours(reader.recent.read_loads(cluster, job, now - timedelta(hours=USUAL_H), now), now_s)
    return JobPage(
        line=line_of(look, facts),
        hours=hours,
        charts=draw_charts(reader, look, facts, hours, log),
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
        results=tuple(list_results(reader.tables.read_last(STEP_RESULTS, now_s).get((cluster, job), ()), now)),
        ran=sum_days(reader.tables.read_last(JOB_DAYS, now_s).get((cluster, job), ()), now),
        policies=tuple(list_policies(reader.tables.read_last(BACKTESTS, now_s).get((cluster, job), ()), now_s)),
        decisions=tuple(list_decisions(log, now_s)),
        curves=tuple(curves),
        price=price_of(settings),
        slot_price=slot_price_of(settings, cluster, job),
        standing=next((text for text in map(describe_standing, plan) if text), ""),
        names=names_of(plan, [one.operator for one in curves]),
        vertices=reader.tables.read_vertices(cluster, job, now) if facts.steps else {},
        faults=tuple(filter(lambda one: one.needs_person and _concerns(one, cluster, job), look.facts.health)),
        frontier=read_frontier(place(settings.paths.out), cluster, job),
        goal=settings.planner.goal_of(cluster, job) if settings.planner.policy_of(cluster, job) == RECOVERS else "",
        job_id=next((row.job_id for row in plan if row.job_id), ":jobid"),
    )


def _concerns(fact: HealthFact, cluster: str, job: str) -> bool:
    """Whether a fault is of the job itself, but for what waits for a person, or keeps what is known of it old."""
    is_silent = fact.name == Fault.CLUSTER_SILENT and fact.scope == cluster
    return is_silent or (fact.scope == f"{cluster}/{job}" and fact.name != Fault.WAITS_FOR_PERSON)


def _choose_hours(windows: Sequence[LoadFact], now_s: float) -> int:
    """Return how far back a job is shown: a day, or the least span that has all that is known of that day."""
    if not windows:
        return USUAL_H
    return next(one for one in HOURS if one == USUAL_H or now_s - windows[0].at_s <= one * HOUR_S)


def read_waiting(reader: FleetReader, look: LakeSnapshot, cluster: str, job: str) -> list[WaitingStep]:
    """Return the steps of a job that wait for a yes, as they are shown and answered."""
    ids = {one.what for one in look.facts.waiting if (one.cluster, one.job, one.kind) == (cluster, job, "approval")}
    row = reader.log.read_last(cluster, job) if ids else None
    waits = [] if row is None else find_waiting([row], look.settings, look.facts.at_s)
    return [one for one in waits if one.step_id in ids]


def read_blocks(reader: FleetReader, look: LakeSnapshot, cluster: str, job: str) -> list[Block]:
    """Return what of a job only a person lifts."""
    if not any((one.cluster, one.job) == (cluster, job) for one in look.facts.waiting if one.kind != "approval"):
        return []
    row = reader.log.read_last(cluster, job)
    lifted = [one.block_id for one in reader.read_lifted() if (one.cluster, one.job) == (cluster, job)]
    return [] if row is None else find_blocks(row, look.settings, lifted)


def _find_undoable(
    reader: FleetReader, look: LakeSnapshot, cluster: str, job: str
) -> tuple[UndoableRescale | None, str]:
    try:
        result = read_undoable(reader, cluster, job, look.facts.at_s)
        check_not_held(look.facts.holds, cluster, job)
    except NothingToUndoError as error:
        return None, str(error)
    return result, ""


def _list_acts(reader: FleetReader, cluster: str, job: str, now: datetime) -> list[HistoryEntry]:
    rows = reader.tables.read_interventions(now - timedelta(days=14), now)
    mine = select_acts(rows, cluster, job)[-ACTS:]
    return [HistoryEntry(row["at"], row["scope"], line_of_act(row), row["by"] or "") for row in reversed(mine)]
