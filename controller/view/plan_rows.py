"""What the tables say of a job between two ticks, as small values; times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass

from include.tables.plan_row import PlanRow

JobKey = tuple[str, str]
"""Cluster and job."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job's newest plan.

    Attributes:
        as_of_s: when it was made.
        status: planned, hold or refused.
        steps: in their order; empty unless the status is planned.
        reason: of the first row, one sentence for a person.
        refusal: named reason of a refused plan.
    """

    cluster: str
    job: str
    job_id: str | None
    as_of_s: float
    status: str
    steps: tuple[PlanRow, ...]
    reason: str
    refusal: str | None
    policy: str | None
    model_version: str | None
    forecast_version: str | None
    code_version: str | None
    observations_until_s: float | None


@dataclass(frozen=True, slots=True)
class PlanMemory:
    """What a job's newest plan left for the controller: the policy's memory as JSON."""

    as_of_s: float
    policy: str
    memory: str


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """An operator of a job graph; ``upstream`` by name, ``ship_strategies`` in the same order."""

    name: str
    vertex_id: str
    position: int
    upstream: tuple[str, ...]
    ship_strategies: tuple[str, ...]
    parallelism: int | None
    max_parallelism: int | None
    partitions: int | None = None
    slot_sharing_group: str | None = None


@dataclass(frozen=True, slots=True)
class JobGraphRow:
    """A job's graph as last ingested; operators in topological order."""

    job_id: str
    seen_at_s: float
    operators: tuple[GraphOperator, ...]


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
