"""Schedules of a job: least and most slots, or of single operators, in windows that a cron expression begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from croniter import croniter
from pydantic import AfterValidator, Field, model_validator

from include.settings.cron import check_cron, longest_interval_s
from include.settings.section import SLOTS_MAX, Section, Text
from include.settings.time_zone import TimeWithZone, TimeZone
from include.utc import DAY_S


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
    """A window in which a job keeps to other slots; of several the strictest holds."""

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
        times = croniter(self.cron, first)
        result: list[tuple[datetime, datetime]] = []
        while True:
            begin = times.get_next(datetime).replace(tzinfo=zone, fold=0).astimezone(UTC)
            if begin >= until:
                return result
            end = begin + lasts if self.ends_at is None else min(begin + lasts, self.ends_at)
            if end > since:
                result.append((begin, end.astimezone(UTC)))
