"""Lines of a job's page: its rescales, decisions, limits, how it ran, and what came of its steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fleet.explanation import outcome_of
from fleet.facts import OutcomeFact
from fleet.small_tables import select_newest
from include.settings import Settings
from include.utc import DAY_S
from models.control.case import SENDS

RESCALES, RESULTS, DECISIONS = 20, 12, 40
RAN_DAYS = 3


@dataclass(frozen=True, slots=True)
class RescaleRow:
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
class LimitRow:
    """One limit in force: its value, and which part of the settings has it."""

    name: str
    value: str
    level: str


@dataclass(frozen=True, slots=True)
class DecisionRow:
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
class RecentDays:
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


def list_rescales(
    log: Sequence[Mapping[str, Any]], judged: Iterable[Mapping[str, Any]], cluster: str, job: str
) -> list[RescaleRow]:
    """Return the requests of a job, the newest first; a request and its answer are one line.

    ``log`` has rows of :data:`fleet.log_tables.LIGHT` of the job, in their order, ``judged`` those of
    ``gold.rescale_outcomes``.
    """
    outcomes = [outcome_of(row) for row in judged if (row["cluster"], row["job"]) == (cluster, job)]
    lines, last = list[RescaleRow](), dict[tuple[str, str], int]()
    for row in log:
        if row["verb"] not in SENDS:
            continue
        step = row["step_id"] or str(row["entry"])
        place = last.get((row["verb"], step), len(lines))
        if place < len(lines) and lines[place].answer and not row["answer"]:  # the same step is sent once more
            place = len(lines)
        at_s = row["at"].timestamp() if place == len(lines) else lines[place].at_s
        last[row["verb"], step] = place
        lines[place:] = [
            RescaleRow(
                at_s=at_s,
                verb=row["verb"],
                reason=row["reason"],
                detail=row["detail"] or "",
                answer=row["answer"] or "",
                is_dry_run=bool(row["is_dry_run"]),
                slots_from=row["slots_from"],
                slots_to=row["slots_to"],
                outcome=_find_outcome(outcomes, step, at_s, row["at"].timestamp()),
            ),
            *lines[place + 1 :],
        ]
    return sorted(lines, key=lambda line: -line.at_s)[:RESCALES]


def _find_outcome(outcomes: Iterable[OutcomeFact], step: str, sent_s: float, answered_s: float) -> OutcomeFact | None:
    """Return what came of a request between two times; a step that is sent again has an outcome of each request."""
    return next(
        (one for one in outcomes if one.step_id == step and sent_s <= (one.requested_at_s or sent_s) <= answered_s),
        None,
    )


def list_results(rows: Iterable[Mapping[str, Any]], now: datetime) -> list[Mapping[str, Any]]:
    """Return the last results of a job's steps, the newest first."""
    mine = [row for row in rows if row["apply_at"] <= now]
    return sorted(mine, key=lambda row: row["apply_at"], reverse=True)[:RESULTS]


def sum_days(rows: Iterable[Mapping[str, Any]], now: datetime) -> RecentDays | None:
    """Return how a job ran on the last dates; None where nobody has measured it."""
    mine = [row for row in rows if row["until"] <= now]
    mine = [row for row in sorted(mine, key=lambda row: row["date"])[-RAN_DAYS:] if row["measured_s"]]
    if not mine:
        return None
    known_s = sum(row["late_known_s"] or 0.0 for row in mine)
    return RecentDays(
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


def list_decisions(log: Sequence[Mapping[str, Any]], now_s: float) -> list[DecisionRow]:
    """Return the decisions on a job within a day, the newest first; what was decided again and again is one line."""
    lines: list[DecisionRow] = []
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
            lines.append(DecisionRow(at_s, at_s, *same, *texts, bool(row["is_dry_run"])))
    return lines[::-1][:DECISIONS]


def list_limits(settings: Settings, cluster: str, job: str) -> list[LimitRow]:
    """Return the limits that are set, each with the part of the settings that it comes from: the strictest counts."""
    levels = {
        "limits": settings.limits,
        f"clusters.{cluster}.limits": settings.cluster(cluster).limits,
        f'limits.jobs."{cluster}/{job}"': settings.job_limits(cluster, job),
    }
    result = [LimitRow("mode in force", settings.mode_of(cluster, job), "the strictest of all")]
    for level, limits in levels.items():
        for name, value in limits.model_dump(exclude_none=True, exclude={"jobs"}).items():
            is_chosen = name in limits.model_fields_set
            if (is_chosen or level == "limits") and value not in ({}, (), False):
                shown = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, dict) else value
                result.append(LimitRow(name, str(shown), level if is_chosen else f"{level}, default"))
    return result
