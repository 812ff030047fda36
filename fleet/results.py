"""What came of Tidewise: what it did to each job, saved and cost, against what was promised and what ran before.

Pure: rows of ``gold.job_days``, ``gold.step_results`` and ``gold.backtests`` in, figures with intervals out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np

from models.intervals import Estimate, estimate

Row = Mapping[str, Any]
JobKey = tuple[str, str]
BEFORE_DAYS = 14
"""So many dates before the first rescale of Tidewise are what ran before."""
DAY_MEASURED_S = 12 * 3600.0
"""A date that was measured for less is in no mean of days."""


@dataclass(frozen=True, slots=True)
class JobDays:
    """Dates of a job, each a row of ``gold.job_days`` that was measured for half a day at least.

    Attributes:
        slots: mean of them.
        late_minutes: a day, over the time that is known; None where none is.
    """

    count: int
    slots: float
    late_minutes: float | None
    load_per_s: float | None


@dataclass(frozen=True, slots=True)
class StepResults:
    """Steps of plans that took effect and have ended, promised beside came.

    Attributes:
        slot_hours: saved by them as requested: slots before minus slots asked for, over their time.
        slot_hours_came: the same with the slots that ran.
        late_minutes, late_minutes_promised: of the steps for which both are known.
        late_of: number of those.
        above_q90: steps whose load came above its 90% forecast, of ``load_of``.
        recovery_s, took_s: means over rescales for which both are known; None without any.
    """

    steps: int = 0
    slot_hours: float = 0.0
    slot_hours_came: float = 0.0
    late_minutes: float = 0.0
    late_minutes_promised: float = 0.0
    late_of: int = 0
    above_q90: int = 0
    load_of: int = 0
    recovery_s: float | None = None
    took_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job over a period.

    Attributes:
        sent: status -> number of steps that the controller decided on, of all origins.
        due, as_planned: steps of plans that were due, and that went out as planned.
        restarts: failures of the job, whoever caused them.
        before: what ran before the first rescale; None where nobody measured it.
        since: dates of the period after it; None without a whole one.
        slots_ran: mean over the time that was measured in the period; None where nothing was.
        slots_before: slots that are compared with: of ``before``, else those that the first rescale left.
        saved: slot-hours a day against those; None where they cannot be told.
        late: late minutes a day more than before; None where they cannot be told.
        against: why Tidewise advises against itself here; empty where it does not.
    """

    cluster: str
    job: str
    measured_s: float
    sent: Mapping[str, int]
    due: int
    as_planned: int
    restarts: int
    before: JobDays | None
    since: JobDays | None
    slots_ran: float | None
    slots_before: float | None
    saved: Estimate | None
    late: Estimate | None
    promises: StepResults
    against: tuple[str, ...] = ()

    @property
    def rescales(self) -> int:
        """Rescales that ran as requested, and stayed or were taken back."""
        return sum(self.sent.get(name, 0) for name in ("confirmed", "rolled_back"))

    @property
    def name(self) -> str:
        """``cluster/job``."""
        return f"{self.cluster}/{self.job}"


@dataclass(frozen=True, slots=True)
class Period:
    """Dates, both included."""

    first: date
    last: date

    def has(self, day: date) -> bool:
        """Whether a date is one of them."""
        return self.first <= day <= self.last


@dataclass
class _ResultRows:
    days: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    backtests: list[Row] = field(default_factory=list)


def judge_jobs(
    period: Period,
    days: Iterable[Row],
    steps: Iterable[Row],
    backtests: Iterable[Row] = (),
    advice: Mapping[JobKey, str] | None = None,
    *,
    worth_of: Callable[[str, str], float | None],
) -> list[JobResult]:
    """Return each job that was measured or decided on in a period, those that Tidewise advises against itself first.

    Args:
        period: that is asked about.
        days: rows of gold.job_days, those before the period as well.
        steps: rows of gold.step_results, those before the period as well.
        backtests: rows of gold.backtests of the newest comparison.
        advice: job -> sentence of ``tidewise advise`` against Tidewise.
        worth_of: cluster, job -> late minutes that cost as much as a slot for an hour; None: lateness costs nothing.
    """
    jobs: dict[JobKey, _ResultRows] = {}
    for name, rows in (("days", days), ("steps", steps), ("backtests", backtests)):
        for row in rows:
            getattr(jobs.setdefault((row["cluster"], row["job"]), _ResultRows()), name).append(row)
    objections = advice or {}
    results = [
        judge_job(key, period, rows, advice=objections.get(key, ""), worth=worth_of(*key)) for key, rows in jobs.items()
    ]
    known = [one for one in results if one.measured_s or one.sent or one.due]
    return sorted(known, key=lambda one: (not one.against, -_amount(one), one.cluster, one.job))


def judge_job(key: JobKey, period: Period, rows: _ResultRows, *, advice: str, worth: float | None) -> JobResult:
    """Return the result of one job."""
    days = sorted(rows.days, key=lambda row: row["date"])
    own = sorted((row for row in rows.steps if row["status"] == "confirmed"), key=lambda row: row["apply_at"])
    first = own[0]["date"] if own else None
    inside = [row for row in days if period.has(row["date"])]
    whole = [row for row in days if (row["measured_s"] or 0.0) >= DAY_MEASURED_S]
    earlier = [row for row in whole if first is not None and row["date"] < first][-BEFORE_DAYS:]
    since = [row for row in whole if first is not None and row["date"] > first and period.has(row["date"])]
    before = _days_of(earlier)
    slots_before = before.slots if before is not None else own[0]["slots_from"] if own else None
    decided = [row for row in rows.steps if period.has(row["date"])]
    result = JobResult(
        *key,
        measured_s=sum(row["measured_s"] or 0.0 for row in inside),
        sent=Counter(row["status"] for row in decided),
        due=sum(row["steps_due"] or 0 for row in inside),
        as_planned=sum(row["steps_as_planned"] or 0 for row in inside),
        restarts=sum(row["restarts"] or 0 for row in inside),
        before=before,
        since=_days_of(since),
        slots_ran=_mean_slots(inside),
        slots_before=slots_before,
        saved=_saved(slots_before, since),
        late=_more_late(earlier, since),
        promises=keep_promises([row for row in decided if row["status"] == "confirmed" and row["origin"] == "plan"]),
    )
    return _with_doubts(result, rows.backtests, advice, worth)


def keep_promises(steps: Sequence[Row]) -> StepResults:
    """Return what was promised of steps beside what came of them."""
    hours = [(row["ended_at"] - row["effective_at"]).total_seconds() / 3600 for row in steps]
    timed = list(zip(steps, hours, strict=True))
    counts = [
        (hour, row)
        for row, hour in timed
        if None not in (row["slots_from"], row["slots_to"], row["slots_ran"]) and hour > 0
    ]
    late = [row for row in steps if row.get("late_minutes_promised") is not None and row["late_minutes"] is not None]
    load = [row for row in steps if row["load_q90_per_s"] is not None and row["load_max_per_s"] is not None]
    took = [row for row in steps if row["recovery_s"] is not None and row["took_s"] is not None]
    return StepResults(
        steps=len(steps),
        slot_hours=sum(hour * (row["slots_from"] - row["slots_to"]) for hour, row in counts),
        slot_hours_came=sum(hour * (row["slots_from"] - row["slots_ran"]) for hour, row in counts),
        late_minutes=sum(row["late_minutes"] for row in late),
        late_minutes_promised=sum(row["late_minutes_promised"] for row in late),
        late_of=len(late),
        above_q90=sum(row["load_max_per_s"] > row["load_q90_per_s"] for row in load),
        load_of=len(load),
        recovery_s=_mean([row["recovery_s"] for row in took]),
        took_s=_mean([row["took_s"] for row in took]),
    )


def _with_doubts(one: JobResult, backtests: Sequence[Row], advice: str, worth: float | None) -> JobResult:
    doubts = [text for text in [_describe_loss(one, worth)] if text]
    bad = sum(one.sent.get(name, 0) for name in ("failed", "rolled_back"))
    if bad and bad > one.sent.get("confirmed", 0):
        doubts.append(f"{bad} of its rescales failed or were taken back, {one.sent.get('confirmed', 0)} stayed")
    better = next((row for row in backtests if row["recommended"] and not row["in_use"]), None)
    if better is not None:
        doubts.append(
            f"by the comparison of {better['as_of']:%Y-%m-%d}, {better['policy']} would have been cheaper than the "
            "policy in use"
        )
    if advice:
        doubts.append(advice)
    return replace(one, against=tuple(doubts))


def _describe_loss(one: JobResult, worth: float | None) -> str:
    """Return that a job costs more than before, beyond the intervals; empty where it does not.

    ``worth``: late minutes that cost as much as a slot for an hour; None: lateness costs nothing.
    """
    saved, late = one.saved, one.late
    if saved is None:
        return f"it is late for {late.mean:.1f} minutes a day more than before" if late and late.low > 0 else ""
    slots = f"{abs(saved.mean):.1f} slot-hours a day {'fewer' if saved.mean >= 0 else 'more'} than before"
    if late is None or worth is None:
        return f"it takes {slots}" if saved.high < 0 else ""
    loss = late.mean - worth * saved.mean
    if loss - math.hypot(late.mean - late.low, worth * (saved.high - saved.mean)) <= 0:
        return ""
    more = f"{abs(late.mean):.1f} minutes a day {'more' if late.mean >= 0 else 'less'}"
    return f"it takes {slots} and is late for {more}: together worth {loss:.1f} late minutes a day more"


def _days_of(rows: Sequence[Row]) -> JobDays | None:
    if not rows:
        return None
    known_s = sum(row["late_known_s"] or 0.0 for row in rows)
    late = sum(row["late_minutes"] or 0.0 for row in rows)
    loads = [row["load_mean_per_s"] for row in rows if row["load_mean_per_s"] is not None]
    return JobDays(
        len(rows),
        float(np.mean([_slots(row) for row in rows])),
        86_400 * late / known_s if known_s else None,
        _mean(loads),
    )


def _saved(slots_before: float | None, since: Sequence[Row]) -> Estimate | None:
    if slots_before is None or not since:
        return None
    return estimate(np.array([[24.0 * (slots_before - _slots(row))] for row in since]))


def _more_late(before: Sequence[Row], since: Sequence[Row]) -> Estimate | None:
    """Return late minutes a day more than before: both are resampled by days, apart from each other."""
    ran, runs = ([_late_a_day(row) for row in rows if row["late_known_s"]] for rows in (before, since))
    if not ran or not runs:
        return None
    first, second = estimate(np.array(ran)[:, None], seed=1), estimate(np.array(runs)[:, None])
    mean = second.mean - first.mean
    # Ends of a difference of two independent means: their distances from the means add up in squares.
    low = math.hypot(second.mean - second.low, first.high - first.mean)
    high = math.hypot(second.high - second.mean, first.mean - first.low)
    return Estimate(mean, mean - low, mean + high)


def _slots(row: Row) -> float:
    return 3600.0 * float(row["slot_hours"] or 0.0) / float(row["measured_s"])


def _mean_slots(rows: Sequence[Row]) -> float | None:
    measured_s = sum(row["measured_s"] or 0.0 for row in rows)
    return 3600.0 * sum(row["slot_hours"] or 0.0 for row in rows) / measured_s if measured_s else None


def _late_a_day(row: Row) -> float:
    return 86_400 * float(row["late_minutes"] or 0.0) / float(row["late_known_s"])


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _amount(one: JobResult) -> float:
    return abs(one.saved.mean) if one.saved is not None else 0.0
