"""What the tables say of a job between two ticks, as small values; times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass

from include.tables.plan_row import PlanRow

JobKey = tuple[str, str]
"""Cluster and job."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job's newest plan, made at ``as_of_s``.

    Attributes:
        steps: in their order; none of a plan that changes nothing or was refused.
        observations_until_s: end of the windows that it was made from.
    """

    as_of_s: float
    steps: tuple[PlanRow, ...]
    forecast_version: str | None
    observations_until_s: float | None


@dataclass(frozen=True, slots=True)
class LoadBand:
    """What a forecast says of the load of all sources of a job at a time, records/s."""

    q50_per_s: float
    q90_per_s: float


@dataclass(frozen=True, slots=True)
class PolicyMemory:
    """A policy's memory of a job, as text, and which policy's it is."""

    policy: str = ""
    memory: str = ""
