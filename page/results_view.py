"""The view of what came of Tidewise over a month, or the last thirty days."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from fleet.fleet_reader import FleetReader
from fleet.results import JobKey, JobResult, Period, StepResults, judge_jobs, keep_promises
from fleet.small_tables import RowsOfJobs, select_newest
from include.place import place
from include.tables import BACKTESTS, CERTIFICATES, EVENT_RESULTS, JOB_DAYS, STEP_RESULTS
from models.intervals import Estimate
from page.money import Price, price_of
from page.shortfall import slot_price_of

DAYS = 30
JOBS = 200
CARRIED_OUT = ("sent", "confirmed", "failed", "rolling_back", "rolled_back")  # statuses of steps that were sent
_TABLES = (JOB_DAYS, STEP_RESULTS, BACKTESTS, CERTIFICATES, EVENT_RESULTS)
VIEWS = 8  # of so many months, as addresses name them


@dataclass(frozen=True, slots=True)
class ResultsPage:
    """All that the page shows.

    Attributes:
        months: that can be asked for, as 2026-11, the newest first.
        jobs: those that Tidewise advises against itself first, at most :data:`JOBS`.
        measured: jobs whose saving can be measured.
        saved: slot-hours a day of all those together.
        before: slot-hours a day that they took before.
        late: late minutes a day more of all jobs for which it can be measured; None without any.
        sent: status -> number of steps that were decided on.
        price: what a slot-hour costs; None where nobody has said it.
        advised: whether ``tidewise advise`` has left its figures beside the report.
        certificates: rows of the newest ones, the jobs with most regret first; those without one, last, say why.
        events: rows of what came of the events that people knew of.
    """

    period: Period
    months: tuple[str, ...]
    jobs: tuple[JobResult, ...]
    others: int
    measured: int
    saved: Estimate | None
    before: float
    late: Estimate | None
    promises: StepResults
    sent: Mapping[str, int]
    due: int
    as_planned: int
    price: Price | None
    advised: bool
    certificates: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_dry_run(self) -> bool:
        """Whether steps were decided on and none was sent, so that nobody knows what would have come of them."""
        return "dry_run" in self.sent and self.sent.keys().isdisjoint(CARRIED_OUT)

    @property
    def rescales(self) -> int:
        """That ran as requested."""
        return self.sent.get("confirmed", 0) + self.sent.get("rolled_back", 0)

    @property
    def against(self) -> tuple[JobResult, ...]:
        """Jobs on which Tidewise advises against itself."""
        return tuple(one for one in self.jobs if one.against)


class ResultsReader:
    """Keeps what was worked out until the tables change."""

    def __init__(self, reader: FleetReader) -> None:
        self.reader = reader
        self._read: tuple[RowsOfJobs, ...] = ()
        self._views: dict[tuple[str, date], ResultsPage] = {}

    def read(self, now_s: float, month: str = "") -> ResultsPage:
        """Return the view of a month (2026-11), or of the last days."""
        tables_read = tuple(self.reader.tables.read_last(table, now_s) for table in _TABLES)
        if tuple(map(id, tables_read)) != tuple(map(id, self._read)):
            self._read, self._views = tables_read, {}
        today = datetime.fromtimestamp(now_s, UTC).date()
        key = (month, today)
        if key not in self._views:
            days, steps, backtests, certificates, events = (
                list(chain.from_iterable(one.values())) for one in tables_read
            )
            advice = read_advice(place(self.reader.settings.paths.out))
            period = choose_period(month, today)
            days, steps = ([row for row in rows if row["date"] <= today] for rows in (days, steps))
            price = price_of(self.reader.settings)
            compared = select_newest(backtests, now_s)
            worth_of = partial(slot_price_of, self.reader.settings)
            made = form_results(period, days, steps, compared, advice=advice, price=price, worth_of=worth_of)
            self._views[key] = replace(
                made,
                certificates=tuple(sorted(select_newest(certificates, now_s), key=_order_certificate)),
                events=tuple(select_newest(events, now_s)),
            )
            for oldest in list(self._views)[:-VIEWS]:
                del self._views[oldest]
        return self._views[key]


def _order_certificate(row: Mapping[str, Any]) -> tuple[float, str, str]:
    regret = row["regret"]
    return -float("-inf" if regret is None else regret), row["cluster"], row["job"]


def choose_period(month: str, today: date) -> Period:
    """Return the dates of a month, as far as they are over; without one that can be read the last thirty."""
    try:
        first = date.fromisoformat(f"{month}-01")
    except ValueError:
        return Period(today - timedelta(days=DAYS - 1), today)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return Period(first, min(last, max(today, first)))


def form_results(
    period: Period,
    days: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    backtests: Sequence[Mapping[str, Any]],
    *,
    advice: Mapping[JobKey, str] | None,
    price: Price | None,
    worth_of: Callable[[str, str], float | None],
) -> ResultsPage:
    """Return the view of a period."""
    jobs = judge_jobs(period, days, steps, backtests, advice, worth_of=worth_of)
    measured = [one for one in jobs if one.saved is not None and one.slots_before is not None]
    decided = [row for row in steps if period.has(row["date"])]
    promises = keep_promises([row for row in decided if row["status"] == "confirmed" and row["origin"] == "plan"])
    sent: dict[str, int] = {}
    for one in jobs:
        for status, count in one.sent.items():
            sent[status] = sent.get(status, 0) + count
    return ResultsPage(
        period=period,
        months=tuple(sorted({f"{row['date']:%Y-%m}" for row in (*days, *steps)}, reverse=True)),
        jobs=tuple(jobs[:JOBS]),
        others=max(len(jobs) - JOBS, 0),
        measured=len(measured),
        saved=_sum([one.saved for one in measured if one.saved is not None]),
        before=sum(24.0 * (one.slots_before or 0.0) for one in measured),
        late=_sum([one.late for one in jobs if one.late is not None]),
        promises=promises,
        sent=sent,
        due=sum(one.due for one in jobs),
        as_planned=sum(one.as_planned for one in jobs),
        price=price,
        advised=advice is not None,
    )


def read_advice(out: Path) -> dict[JobKey, str] | None:
    """Return what ``tidewise advise`` says against Tidewise, by job; None where it was not made or cannot be read."""
    try:
        made = json.loads((out / "advice.json").read_text(encoding="utf-8"))
        against = [one for one in made["jobs"] if one["verdict"]["is_against"]]
        return {(one["cluster"], one["job"]): f"by tidewise advise: {one['verdict']['sentence']}" for one in against}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sum(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the sum of independent means: distances of their ends add up in squares."""
    if not estimates:
        return None
    mean = sum(one.mean for one in estimates)
    low = float(np.hypot.reduce([one.mean - one.low for one in estimates]))
    high = float(np.hypot.reduce([one.high - one.mean for one in estimates]))
    return Estimate(mean, mean - low, mean + high)
