"""How much a job is at risk, and which of two comes first in the list: late minutes of a day, one figure for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.facts import JobStatus
from fleet.health import describe_age
from fleet.loads import LoadFact
from include.settings.planner import Costs
from include.tables.plan_row import PlanRow
from include.utc import DAY_S, MINUTE_S
from models.scheduling.figures import format_late


@dataclass(frozen=True, slots=True)
class Risk:
    """What is shown, and how it is sorted: greater is worse.

    Attributes:
        level: ``bad``, ``ok`` or ``unknown``.
    """

    level: str
    text: str
    hint: str
    order: tuple[float, float]


@dataclass(frozen=True, slots=True)
class LatenessGoal:
    """How late a job may be.

    Attributes:
        late_after_s: it is late while a record waits for longer.
        late_share: of the time that it may be.
    """

    late_after_s: float
    late_share: float

    @classmethod
    def of(cls, costs: Costs) -> LatenessGoal:
        """Return the goal that the settings state."""
        return cls(costs.late_after_s, costs.late_share_goal)

    @property
    def minutes(self) -> float:
        """Late minutes that it allows of a day."""
        return self.late_share * DAY_S / MINUTE_S

    def level_of(self, late_minutes: float | None) -> str:
        """Return how late minutes are coloured, of a day or of a part of it: red where they alone are too many."""
        if late_minutes is None:
            return "unknown"
        return "bad" if late_minutes > self.minutes else "ok"

    def describe(self) -> str:
        """Return it as a person reads it."""
        return f"{self.minutes:.3g} late minutes a day, in which a record waits for more than {self.late_after_s:g} s"


def judge_risk(job: JobStatus, day_late_minutes: float | None, load: LoadFact | None, goal: LatenessGoal) -> Risk:
    """Return the risk of a job: first what is wrong now, then the late minutes that its plan expects of its day."""
    late = day_late_minutes or 0.0
    if load is not None and load.lag_s is not None and load.lag_s > goal.late_after_s:
        waited = f"records waited for {describe_age(load.lag_s)} in the last window"
        hint = f"{waited}; late is more than {goal.late_after_s:g} s"
        return Risk("bad", f"late {describe_age(load.lag_s)}", hint, (4, load.lag_s))
    if job.state and job.state != "RUNNING":
        return Risk("bad", "not running", f"Flink's state of the job is {job.state}", (3, late))
    if job.waiting:
        return Risk("bad", "needs you", job.waiting[0].detail, (2, late))
    if day_late_minutes is None and load is not None and load.lag_s is not None:
        return Risk(
            "ok", "on time", "no record waits too long; no plan says for how many minutes one will", (0, load.lag_s)
        )
    if day_late_minutes is None:
        return Risk("unknown", "unknown", "no plan says for how many minutes it is late", (0, 0.0))
    hint = f"expected in the day of the plan; the goal is at most {goal.describe()}"
    return Risk(goal.level_of(late), format_late(late), hint, (1, late))


def find_peak(plan: Sequence[PlanRow], now_s: float) -> float | None:
    """Return the highest 90% forecast that a plan has from now on, records/s; None where it does not say."""
    later = (row for row in plan if row.valid_until_s is None or row.valid_until_s > now_s)
    return max((row.expected_load_q90_per_s for row in later if row.expected_load_q90_per_s is not None), default=None)


def find_day_late(plan: Sequence[PlanRow]) -> float | None:
    """Return the late minutes that a plan expects of its day; None where it does not say."""
    return next((row.day_late_minutes for row in plan if row.day_late_minutes is not None), None)
