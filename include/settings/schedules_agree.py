"""What has to hold between the schedules of jobs, their other limits, and the budgets of their clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from include.settings.limits import JobLimits
from include.settings.section import SLOTS_MAX
from include.settings.slot_schedules import SlotSchedule

_FROM = datetime(2024, 1, 1, tzinfo=UTC)  # a leap year, in which contradictions are looked for
_YEAR = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class _Demand:
    """Fewest and most slots of a job in a window; ``key`` is where they are set."""

    key: str
    job: str
    least: int
    most: int
    schedule: SlotSchedule | None = None


def find_schedule_contradiction(
    jobs: Mapping[str, JobLimits], highest: Mapping[str, tuple[str, int]], budgets: Mapping[str, int]
) -> str | None:
    """Return what schedules and other limits leave no room for, in one line with what to write; None where they agree.

    ``highest`` has the strictest upper bound of all levels, its key and its slots; a budget is of a cluster's jobs
    together.
    """
    return next(_list_contradictions(jobs, highest, budgets), None)


def _list_contradictions(
    jobs: Mapping[str, JobLimits], highest: Mapping[str, tuple[str, int]], budgets: Mapping[str, int]
) -> Iterator[str]:
    of_clusters: dict[str, list[_Demand]] = {}
    for job, limits in jobs.items():
        always = _Demand(f'limits.jobs."{job}".slots_min', job, limits.slots_min or 1, SLOTS_MAX)
        key, most = highest.get(job, ("", SLOTS_MAX))
        own = [_demand_of(job, name, one) for name, one in limits.schedules.items()]
        for one in own:
            if one.least > most:
                yield f"{one.key} = {one.least} is above {key} = {most}; write {one.key} = {most} or less"
            if one.most < always.least:
                yield (
                    f"{one.key.removesuffix('slots_min')}slots_max = {one.most} is below {always.key} = "
                    f"{always.least}; write {always.least} or more"
                )
        yield from _check_pairs(own)
        of_clusters.setdefault(job.partition("/")[0], []).extend([always, *own])
    for cluster, budget in budgets.items():
        yield from _check_budget(f"clusters.{cluster}.slots_total", budget, of_clusters.get(cluster, []))


def _demand_of(job: str, name: str, schedule: SlotSchedule) -> _Demand:
    key = f'limits.jobs."{job}".schedules.{name}.slots_min'
    return _Demand(key, job, schedule.least, schedule.slots_max or SLOTS_MAX, schedule)


def _check_pairs(own: Sequence[_Demand]) -> Iterator[str]:
    """Yield which two schedules of one job contradict each other at some time of a year."""
    for low in own:
        for high in own:
            if low.least > high.most and (at := _find_common(low, high)) is not None:
                name = high.key.removesuffix("slots_min")
                yield (
                    f"{low.key} = {low.least} is above {name}slots_max = {high.most}, and both are on at "
                    f"{at:%a %H:%M} UTC; write {low.key} = {high.most} or less"
                )


def _find_common(one: _Demand, other: _Demand) -> datetime | None:
    windows = [(*window, place) for place, demand in enumerate((one, other)) for window in _windows(demand.schedule)]
    ends = [_FROM, _FROM]
    for begin, end, place in sorted(windows):
        if begin < ends[1 - place]:
            return begin
        ends[place] = max(ends[place], end)
    return None


def _check_budget(key: str, budget: int, demands: Sequence[_Demand]) -> Iterator[str]:
    """Yield when the fewest slots of a cluster's jobs together are above its budget."""
    most: dict[str, int] = {}
    for one in demands:
        most[one.job] = max(most.get(one.job, 1), one.least)
    if sum(most.values()) <= budget or not any(one.schedule for one in demands):
        return  # limits without a schedule are checked elsewhere
    begins = sorted({begin for one in demands for begin, _ in _windows(one.schedule)})
    for at in begins:
        now: dict[str, tuple[int, str]] = {}
        for one in demands:
            if one.schedule is None or any(begin <= at < end for begin, end in _windows(one.schedule)):
                now[one.job] = max(now.get(one.job, (0, "")), (one.least, one.key))
        total = sum(least for least, _ in now.values())
        if total > budget:
            parts = " and ".join(f"{name} = {least}" for least, name in sorted(now.values(), reverse=True)[:2])
            yield (
                f"the fewest slots of the jobs come to {total} at {at:%a %H:%M} UTC, {key} is {budget}: {parts}; write "
                f"{key} = {total} or more, or less in one of them"
            )
            return


@lru_cache(maxsize=256)
def _list_year(cron: str, duration_s: int, time_zone: str) -> tuple[tuple[datetime, datetime], ...]:
    schedule = SlotSchedule(cron=cron, duration_s=duration_s, time_zone=time_zone, slots_min=1)
    return tuple(schedule.list_windows(_FROM, _FROM + _YEAR))


def _windows(schedule: SlotSchedule | None) -> Sequence[tuple[datetime, datetime]]:
    return () if schedule is None else _list_year(schedule.cron, schedule.duration_s, schedule.time_zone)
