"""Schedules of a job: least and most slots, or of single operators, in windows that a cron expression begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

from croniter import croniter
from pydantic import AfterValidator, Field, model_validator

from include.settings.cron import check_cron, longest_interval_s
from include.settings.section import SLOTS_MAX, Section, Text
from include.settings.time_zone import TimeZone
from include.settings.zoned_time import TimeWithZone
from include.utc import DAY_S

if TYPE_CHECKING:
    from include.settings.limits import JobLimits

_FROM = datetime(2024, 1, 1, tzinfo=UTC)  # a leap year, in which contradictions are looked for
_YEAR = timedelta(days=366)


class OperatorRange(Section):
    """Least and largest parallelism of one operator while a schedule is on."""

    parallelism_min: int | None = Field(None, ge=1, le=SLOTS_MAX, description="least parallelism")
    parallelism_max: int | None = Field(None, ge=1, le=SLOTS_MAX, description="largest parallelism")

    @model_validator(mode="after")
    def _keys_agree(self) -> OperatorRange:
        least, largest = self.parallelism_min, self.parallelism_max
        if least is not None and largest is not None and least > largest:
            raise ValueError(
                f"parallelism_min = {least} is above parallelism_max = {largest}; write parallelism_min = {largest} "
                "or less"
            )
        return self


class SlotSchedule(Section):
    """A window in which a job keeps to other slots. A name may be chosen freely; of several the strictest holds."""

    cron: Annotated[str, AfterValidator(check_cron)] = Field(
        description="when a window begins: five fields, by the clock of time_zone"
    )
    duration_s: int = Field(ge=60, le=7 * DAY_S, description="s; how long a window lasts")
    time_zone: TimeZone = Field("UTC", description="IANA name of the time zone")
    ends_at: TimeWithZone | None = Field(
        None, description="after it no window is on (ISO 8601 with a zone); unset: it never ends"
    )
    slots_min: int | None = Field(None, ge=1, le=SLOTS_MAX, description="fewest slots of the job while it is on")
    slots_max: int | None = Field(None, ge=1, le=SLOTS_MAX, description="most slots of the job while it is on")
    operators: dict[Text, OperatorRange] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _keys_agree(self) -> SlotSchedule:
        if self.slots_min is None and self.slots_max is None and not self.operators:
            raise ValueError("says nothing of slots or operators; write slots_min = 8, say")
        if self.slots_min is not None and self.slots_max is not None and self.slots_min > self.slots_max:
            raise ValueError(
                f"slots_min = {self.slots_min} is above slots_max = {self.slots_max}; write slots_min = "
                f"{self.slots_max} or less"
            )
        longest_s = longest_interval_s(self.cron)
        if self.duration_s >= longest_s:
            raise ValueError(
                f'duration_s = {self.duration_s} reaches from every time of cron = "{self.cron}" to the next, so the '
                f"window would never end; write duration_s = {longest_s // 2}, say, or slots_min and slots_max of the "
                "job itself"
            )
        return self

    @property
    def least(self) -> int:
        """Fewest slots, by the operators as well."""
        return max([self.slots_min or 1, *(one.parallelism_min or 1 for one in self.operators.values())])

    def list_windows(self, since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
        """Return begin and end of the windows that are on at some time between two, in UTC, by time.

        A window lasts for its duration as time passes, whatever the clocks do.  One that begins in an hour that comes
        twice begins with the first; one that begins in an hour that is left out begins an hour later by the clock.
        """
        zone, lasts = ZoneInfo(self.time_zone), timedelta(seconds=self.duration_s)
        until = until if self.ends_at is None else min(until, self.ends_at)
        first = (since - lasts).astimezone(zone).replace(tzinfo=None) - timedelta(hours=3)
        times, result = croniter(self.cron, first), []
        while True:
            begin = times.get_next(datetime).replace(tzinfo=zone, fold=0).astimezone(UTC)
            if begin >= until:
                return result
            end = begin + lasts if self.ends_at is None else min(begin + lasts, self.ends_at)
            if end > since:
                result.append((begin, end.astimezone(UTC)))

    def is_on(self, at: datetime) -> bool:
        """Whether a window is on."""
        return bool(self.list_windows(at, at + timedelta(microseconds=1)))


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

    Args:
        jobs: ``cluster/job`` -> its limits.
        highest: the same -> the strictest upper bound of all levels: its key and its slots.
        budgets: cluster -> slots that its jobs may have together.
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
