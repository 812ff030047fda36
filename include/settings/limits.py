"""Limits that a person sets, with the same keys for the fleet, a cluster and a job; of several the strictest holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from include.settings.cron import check_cron, longest_interval_s
from include.settings.names import BlackoutName, JobKey
from include.settings.section import SLOTS_MAX, Section, Share, Text
from include.settings.slot_schedules import SlotSchedule
from include.settings.time_zone import TimeWithZone, TimeZone
from include.utc import DAY_S

SINGLE_WINDOW_UP_SHARE = 1.0
"""Largest rise for which one observation window is enough, where no ``steps.up_max_share`` is set."""

Mode = Literal["off", "dry-run", "approve", "auto"]
MODES: tuple[Mode, ...] = ("off", "dry-run", "approve", "auto")
"""From the strictest to the loosest."""


def _is_parallelism(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SLOTS_MAX


def _check_pin(value: object) -> object:
    counts = list(value.values()) if isinstance(value, Mapping) else [value]
    if value is None or (counts and all(map(_is_parallelism, counts))):
        return value
    raise ValueError(
        f"must be a whole number from 1 to {SLOTS_MAX} for all operators, or one for each of some operators by name; "
        'write pin = 4, or pin = {"Source: orders" = 2}, say'
    )


Pin = Annotated[int | dict[str, int], BeforeValidator(_check_pin)]


class Blackout(Section):
    """A window in which nothing is sent; windows of all levels count."""

    cron: Annotated[str, AfterValidator(check_cron)] = Field(
        description="when a window begins: five fields, by the clock of time_zone"
    )
    duration_s: int = Field(ge=1, le=7 * DAY_S, description="s; how long a window lasts")
    time_zone: TimeZone = Field("UTC", description="IANA name of the time zone")

    @model_validator(mode="after")
    def _ends(self) -> Blackout:
        longest_s = longest_interval_s(self.cron)
        if self.duration_s >= longest_s:
            raise ValueError(
                f'duration_s = {self.duration_s} reaches from every time of cron = "{self.cron}" to the next, so the '
                f'window would never end; write duration_s = {longest_s // 2}, say, or mode = "off"'
            )
        return self


class Steps(Section):
    """Largest change of one rescale, for the slots and for each operator; a larger one is done in several."""

    up_max_slots: int | None = Field(None, ge=1, le=SLOTS_MAX, description="slots that one rescale may add")
    up_max_share: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="the same as a share of what runs, at least one slot; unset: 1 until two observation "
        "windows in a row agree",
    )
    down_max_slots: int | None = Field(None, ge=1, le=SLOTS_MAX, description="slots that one rescale may take away")
    down_max_share: float | None = Field(
        None, gt=0, le=1, description="the same as a share of what runs, at least one slot"
    )


class _Level(Section):
    """Limits of every job, of those of a cluster, and of one job, named `cluster/job`; docs/limits.md says which wins.

    A cluster's most slots of a job are `slots_max` of its own section.
    """

    mode: Mode | None = Field(
        None, description="off: nothing; dry-run: recorded; approve: each step waits for a person; auto: sent"
    )
    is_held: bool = Field(False, description="nothing is sent, for good; for a time: `tidewise hold`")
    slots_min: int | None = Field(None, ge=1, le=SLOTS_MAX, description="fewest slots of a job")
    allows_falls: bool = Field(True, description="whether a job may get fewer slots")
    cooldown_s: float | None = Field(
        None, ge=0, le=30 * DAY_S, description="s; least time between two changes of a job"
    )
    rescales_per_hour: int | None = Field(None, ge=1, le=3600, description="most requests for a job within an hour")
    rescales_per_day: int | None = Field(None, ge=1, le=86_400, description="most requests for a job within a day")
    approval_expires_h: float | None = Field(
        None, gt=0, le=8760, description="h; how long a step waits for a yes, and a yes counts"
    )
    bad_steps_max: int | None = Field(
        None,
        ge=1,
        le=100,
        description="steps rolled back or failed within a day that put the job in dry-run until lifted",
    )
    steps: Steps = Steps()
    blackouts: dict[BlackoutName, Blackout] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _keys_agree(self) -> Any:
        slots_max = getattr(self, "slots_max", None)
        if self.slots_min is not None and slots_max is not None and self.slots_min > slots_max:
            raise ValueError(
                f"slots_min = {self.slots_min} is above slots_max = {slots_max}; write slots_min = {slots_max} or less"
            )
        hourly, daily = self.rescales_per_hour, self.rescales_per_day
        if hourly is not None and daily is not None and hourly > daily:
            raise ValueError(
                f"rescales_per_hour = {hourly} is above rescales_per_day = {daily}, so it would never count; "
                f"write rescales_per_hour = {daily} or less"
            )
        return self


class ClusterLimits(_Level):
    """Limits of a cluster's jobs. Its most slots of a job are `slots_max` of the cluster's own section."""

    concurrent_rescales: int | None = Field(
        None, ge=1, le=SLOTS_MAX, description="most jobs of the cluster that are rescaled at once"
    )
    looser_jobs: tuple[Text, ...] = Field(
        (), description="names of jobs whose own mode may be looser than the cluster's"
    )


class OperatorLimits(Section):
    """Limits of one operator. A job without an operator of that name is held."""

    parallelism_min: int | None = Field(None, ge=1, le=SLOTS_MAX, description="least parallelism that is asked for")
    parallelism_max: int | None = Field(None, ge=1, le=SLOTS_MAX, description="largest parallelism that is asked for")
    left_alone: bool = Field(False, description="what the operator is asked for is never changed")

    @model_validator(mode="after")
    def _keys_agree(self) -> OperatorLimits:
        least, largest = self.parallelism_min, self.parallelism_max
        if least is not None and largest is not None and least > largest:
            raise ValueError(
                f"parallelism_min = {least} is above parallelism_max = {largest}; "
                f"write parallelism_min = {largest} or less"
            )
        if self.left_alone and (least is not None or largest is not None):
            raise ValueError("left_alone = true and a parallelism exclude each other; remove one of them")
        return self


class JobLimits(_Level):
    """Limits of one job, named `cluster/job`."""

    slots_max: int | None = Field(None, ge=1, le=SLOTS_MAX, description="most slots of the job")
    pin: Pin | None = Field(None, description="parallelism that a person demands: of all operators, or of some by name")
    pin_until: TimeWithZone | None = Field(None, description="the pin ends then (ISO 8601 with a zone)")
    priority: int = Field(
        0,
        ge=-1000,
        le=1000,
        description="the job with the higher priority gets slots that are short; with a budget each step "
        "halves what it pays for slots",
    )
    fed_by: tuple[Text, ...] = Field(
        (),
        description="jobs of the cluster whose output it reads: while one is rescaled or catches up, the other waits",
    )
    operators: dict[Text, OperatorLimits] = Field(default_factory=dict)
    schedules: dict[BlackoutName, SlotSchedule] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _operators_fit(self) -> JobLimits:
        for name, one in self.operators.items():
            key, least, largest = f'operators."{name}"', one.parallelism_min or 1, one.parallelism_max or SLOTS_MAX
            if self.slots_max is not None and least > self.slots_max:
                raise ValueError(
                    f"{key}.parallelism_min = {least} is above slots_max = {self.slots_max}; "
                    f"write {self.slots_max} or less"
                )
            pin = self.pin.get(name) if isinstance(self.pin, dict) else self.pin
            if pin is not None and one.left_alone:
                raise ValueError(f"{key}.left_alone = true contradicts pin = {pin}; remove one of them")
            if pin is not None and not least <= pin <= largest:
                raise ValueError(f"pin = {pin} is outside {key}, {least} to {largest}; write a number within")
        return self

    @model_validator(mode="after")
    def _pin_fits(self) -> JobLimits:
        if self.pin is None:
            if self.pin_until is not None:
                raise ValueError("pin_until has no pin that would end; write pin = 4 as well, say, or remove pin_until")
            return self
        largest = self.pin if isinstance(self.pin, int) else max(self.pin.values(), default=1)
        if self.slots_max is not None and largest > self.slots_max:
            raise ValueError(
                f"pin = {largest} is above slots_max = {self.slots_max}; write pin = {self.slots_max} or less"
            )
        if isinstance(self.pin, int) and self.slots_min is not None and self.pin < self.slots_min:
            raise ValueError(
                f"pin = {self.pin} is below slots_min = {self.slots_min}; write pin = {self.slots_min} or more"
            )
        return self


class FleetLimits(_Level):
    """Limits of every job. Those of a cluster and of a job come on top; docs/limits.md says which wins."""

    mode: Mode = Field(
        "dry-run", description="off: nothing; dry-run: recorded; approve: each step waits for a person; auto: sent"
    )
    slots_max: int | None = Field(None, ge=1, le=SLOTS_MAX, description="most slots of a job")
    cooldown_s: float = Field(300.0, ge=0, le=30 * DAY_S, description="s; least time between two changes of a job")
    approval_expires_h: float = Field(
        12.0, gt=0, le=8760, description="h; how long a step waits for a yes, and a yes counts"
    )
    concurrent_rescales: int = Field(
        3,
        ge=1,
        le=SLOTS_MAX,
        description="most jobs of a cluster rescaled at once; those that are down or far behind do not count",
    )
    concurrent_share: Share = Field(
        0.35, description="the same as a share of the cluster's jobs and slots; the larger counts"
    )
    bad_steps_max: int = Field(
        3,
        ge=1,
        le=100,
        description="steps rolled back or failed within a day that put the job in dry-run until lifted",
    )
    jobs: dict[JobKey, JobLimits] = Field(default_factory=dict)


def resolve_mode(fleet: Mode, cluster: Mode | None, job: Mode | None, *, may_be_looser: bool) -> Mode:
    """Return the mode of a job.

    ``off`` at any level holds. Otherwise a cluster's own mode replaces the fleet's, and a job's own one counts where it
    is stricter than its cluster's, or where the cluster names the job as one that may be looser.
    """
    given = cluster or fleet
    if "off" in {fleet, cluster, job} or job is None:
        return "off" if "off" in {fleet, cluster, job} else given
    is_looser = MODES.index(job) > MODES.index(given)
    return given if is_looser and not may_be_looser else job
