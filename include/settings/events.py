"""What people know of loads to come: an event of some jobs or sources, and by what their load will change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Annotated

from pydantic import Field, model_validator

from include.settings.names import JobKey
from include.settings.section import NAME, Section, Text
from include.settings.time_zone import TimeWithZone

EventName = Annotated[str, Field(pattern=rf"^{NAME}$", max_length=200)]
Factor = Annotated[float, Field(gt=0, le=1000)]
Rate = Annotated[float, Field(gt=0, le=1e15)]
_WIDTH = 1.25  # of the range around a value that is given without one


class Event(Section):
    """A time in which a load is another than its history says, such as a sale."""

    starts_at: TimeWithZone = Field(description="when it begins (ISO 8601 with a zone)")
    ends_at: TimeWithZone = Field(description="when it ends (ISO 8601 with a zone)")
    jobs: tuple[JobKey, ...] = Field((), description='jobs of which every source has it, as `"cluster/job"`')
    sources: dict[JobKey, tuple[Text, ...]] = Field(
        default_factory=dict, description='`"cluster/job"` -> names of the sources that have it, where not all do'
    )
    factor: Factor | None = Field(None, description="how many times the usual load")
    rate_per_s: Rate | None = Field(None, description="records/s of each source, in place of a factor; with `sources`")
    low: float | None = Field(
        None,
        gt=0,
        le=1e15,
        description="10% quantile of the factor or rate; unset: 1.25 times less",
    )
    high: float | None = Field(None, gt=0, le=1e15, description="90% quantile; unset: 1.25 times more")

    @model_validator(mode="after")
    def _keys_agree(self) -> Event:
        if self.ends_at <= self.starts_at:
            raise ValueError(
                f"ends_at = {self.ends_at.isoformat()} is no later than starts_at = {self.starts_at.isoformat()}; "
                "write the end of the event"
            )
        if (self.factor is None) == (self.rate_per_s is None):
            raise ValueError("needs a factor or a rate_per_s, and not both; write factor = 3.0, say")
        if self.rate_per_s is not None and self.jobs:
            raise ValueError(
                "rate_per_s is of a source, and jobs names whole jobs; write sources = "
                f'{{"{self.jobs[0]}" = ["Source: orders"]}}, say'
            )
        if not (self.jobs or self.sources):
            raise ValueError('names neither jobs nor sources; write jobs = ["prod/orders"], say')
        twice = sorted({*self.jobs} & self.sources.keys())
        if twice:
            raise ValueError(f'names "{twice[0]}" in jobs and in sources; write it in one of them')
        low, value, high = self.range
        if not low <= value <= high:
            raise ValueError(f"low = {low:g}, high = {high:g} do not enclose {value:g}; write low <= {value:g} <= high")
        return self

    @property
    def range(self) -> tuple[float, float, float]:
        """Low end, value and high end, of the factor or the rate."""
        value = self.factor or self.rate_per_s or 1.0
        low = value / _WIDTH if self.low is None else self.low
        return low, value, value * _WIDTH if self.high is None else self.high

    @property
    def job_keys(self) -> tuple[str, ...]:
        """Jobs that it names."""
        return (*self.jobs, *self.sources)

    def names_source(self, job: str, source: str) -> bool:
        """Whether a source of a job, ``cluster/job``, has it."""
        return job in self.jobs or source in self.sources.get(job, ())


def find_overlap(events: Mapping[str, Event]) -> str | None:
    """Return the first two events of one source at one time, in one line with what to write; None without any."""
    return next(_list_overlaps(events), None)


def _list_overlaps(events: Mapping[str, Event]) -> Iterator[str]:
    for (name, one), (other_name, other) in combinations(events.items(), 2):
        if one.starts_at >= other.ends_at or other.starts_at >= one.ends_at:
            continue
        for job in one.job_keys:
            if _share_source(one, other, job):
                begin, end = max(one.starts_at, other.starts_at), min(one.ends_at, other.ends_at)
                yield (
                    f'events.{name} and events.{other_name} both say what comes of "{job}" from {begin.isoformat()} to '
                    f"{end.isoformat()}; write one event for that time, with the factor of both together"
                )


def _share_source(one: Event, other: Event, job: str) -> bool:
    if job not in other.job_keys:
        return False
    if job in one.jobs or job in other.jobs:
        return True
    return bool({*one.sources[job]} & {*other.sources[job]})
