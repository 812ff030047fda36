"""How much a job is at risk, and which of two comes first in the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.facts import JobFacts
from fleet.health import describe_age
from fleet.loads import LoadFact
from include.tables.plan_row import PlanRow
from include.utc import DAY_S

WARN, BAD = 0.10, 0.20
"""From these P(late) on a row is amber and red."""


@dataclass(frozen=True, slots=True)
class Risk:
    """What is shown, and how it is sorted: greater is worse.

    Attributes:
        level: ``bad``, ``warn``, ``ok`` or ``unknown``.
        text: a few words.
        hint: one sentence.
        order: sort key.
    """

    level: str
    text: str
    hint: str
    order: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a plan has from now on; None: it does not say.

    Attributes:
        peak_q90_per_s: highest 90% forecast, records/s.
        p_late: highest P(late) of the next day.
    """

    peak_q90_per_s: float | None
    p_late: float | None


def judge_risk(job: JobFacts, p_late: float | None, load: LoadFact | None, late_after_s: float) -> Risk:
    """Return the risk of a job: first what is wrong now, then the highest P(late) of the next day.

    P(late) is the plan's probability that the load exceeds what the configuration sustains in the worst bin of a step.
    """
    if load is not None and load.lag_s is not None and load.lag_s > late_after_s:
        hint = f"records waited for {describe_age(load.lag_s)} in the last window; late is more than {late_after_s:g} s"
        return Risk("bad", f"late {describe_age(load.lag_s)}", hint, (4, load.lag_s))
    if job.state and job.state != "RUNNING":
        return Risk("bad", job.state.lower(), "Flink's state of the job", (3, p_late or 0.0))
    if job.waiting:
        return Risk("bad", "needs you", job.waiting[0].detail, (2, p_late or 0.0))
    if p_late is None:
        return Risk("unknown", "unknown", "no plan says how likely it is late", (0, 0.0))
    level = level_of(p_late)
    hint = "highest probability of the next 24 h that the load exceeds the capacity in the worst bin of a step"
    return Risk(level, f"risk {p_late:.0%}", hint, (1, p_late))


def level_of(p_late: float | None) -> str:
    """Return how P(late) is coloured."""
    if p_late is None:
        return "unknown"
    return "bad" if p_late >= BAD else "warn" if p_late >= WARN else "ok"


def look_ahead(plan: Sequence[PlanRow], now_s: float) -> Ahead:
    """Return what a plan has from now on."""
    peak, p_late = -1.0, -1.0
    for row in plan:
        if row.valid_until_s is not None and row.valid_until_s <= now_s:
            continue
        if row.expected_load_q90_per_s is not None and row.expected_load_q90_per_s > peak:
            peak = row.expected_load_q90_per_s
        is_soon = row.effective_at_s is None or row.effective_at_s < now_s + DAY_S
        if is_soon and row.p_late is not None and row.p_late > p_late:
            p_late = row.p_late
    return Ahead(None if peak < 0 else peak, None if p_late < 0 else p_late)
