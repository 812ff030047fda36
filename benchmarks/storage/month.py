"""A month of a fleet of another size, from what was measured of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.storage.measured_lake import DECISION, EVALUATION, HOUR, PLAN, POLL, RAW_FILES, Measured
from include.settings import Cluster, Settings

HOURS = 730.5  # a twelfth of a year


@dataclass(frozen=True, slots=True)
class Pace:
    """How often things happen to one job, each hour.

    Attributes:
        polls: of its metrics.
        plans: that are made.
        decisions: that are logged: assumed, since that depends on the load.
        evaluations: by the controller; each leaves a row at most.
        memories: of evaluations that upkeep leaves.
        ticks: of the controller.
    """

    polls: float
    plans: float
    decisions: float
    evaluations: float
    memories: float
    ticks: float


def default_pace(decisions_per_day: float) -> Pace:
    """Return the pace of the settings' defaults."""
    settings, cluster = Settings(), Cluster()
    return Pace(
        polls=3600 / cluster.poll_every_s,
        plans=1.0,  # schedules.plan
        decisions=decisions_per_day / 24,
        evaluations=3600 / settings.planner.timing.apply_every_s,
        memories=1.0,  # upkeep
        ticks=3600 / settings.apply.tick_s,
    )


def bytes_in_month(one: Measured, jobs: int, pace: Pace) -> float:
    """Return what the rows of a month take: proportional to the jobs."""
    each_hour = {
        POLL: pace.polls,
        HOUR: 1.0,
        PLAN: pace.plans,
        DECISION: pace.decisions,
        EVALUATION: pace.memories,
    }
    return one.bytes_per_unit * each_hour[one.unit] * HOURS * jobs


def files_in_month(one: Measured) -> float:
    """Return the files of a month after upkeep, whatever the number of jobs: raw files by hour, a table's by day.

    A day that is larger than upkeep makes a file has several.
    """
    return HOURS if one.name == RAW_FILES else HOURS / 24


def table_of_months(measured: Sequence[Measured], sizes: Sequence[int], pace: Pace) -> list[list[str]]:
    """Return a row for each table: what was measured, and a month of fleets of some sizes in GB."""
    rows = []
    for one in measured:
        months = [f"{bytes_in_month(one, jobs, pace) / 1e9:,.2f}" for jobs in sizes]
        per_row = f"{one.bytes_per_row:,.0f}" if one.rows else ""
        rows.append([f"`{one.name}`", one.unit, per_row, f"{one.bytes_per_unit:,.0f}", *months])
    sums = [f"**{sum(bytes_in_month(one, jobs, pace) for one in measured) / 1e9:,.1f}**" for jobs in sizes]
    return [*rows, ["**all**", "", "", "", *sums]]


def requests_in_month(per_tick: float, per_evaluation: float, pace: Pace) -> float:
    """Return the controller's requests to a bucket in a month of one cluster, whatever the number of its jobs."""
    return HOURS * ((pace.ticks - pace.evaluations) * per_tick + pace.evaluations * per_evaluation)
