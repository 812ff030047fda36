"""Flink clusters, and how their raw files become observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from include.settings.connection import Connection, check_http_url
from include.settings.job_names import check_job_names, name_job
from include.settings.kubernetes import Kubernetes
from include.settings.limits import ClusterLimits
from include.settings.section import SLOTS_MAX, Section, Text, WholeSeconds, constant
from include.settings.sources import Kafka, Prometheus, SourceKey
from include.utc import DAY_S, HOUR_S

POLL_LEAST_S = 0.2
"""A JobManager that is polled more often has no time left for its jobs."""


class Cluster(Section):
    """One Flink cluster; without a REST address it is only known from files of raw payloads."""

    rest_url: Annotated[Text, AfterValidator(check_http_url)] | None = Field(
        None, description="address of the JobManager's REST API"
    )
    window_s: int = Field(300, ge=1, le=HOUR_S, description="s; observation window; divides an hour")
    poll_every_s: float = Field(60.0, ge=POLL_LEAST_S, le=HOUR_S, description="s; time between two polls")
    slots_max: int = Field(64, ge=1, le=SLOTS_MAX, description="most slots of one job")
    slots_total: int | None = Field(None, ge=1, le=10**9, description="slot budget: most slots of all its jobs")
    taskmanager_slots: int = Field(
        1,
        ge=1,
        le=SLOTS_MAX,
        description="slots of a TaskManager, of which a job pays whole ones; 1 where jobs share them",
    )
    elastic: bool | None = Field(
        None,
        description="whether the cluster adds TaskManagers; unset: as Flink tells",
    )
    slots_wait_s: float = Field(
        600.0,
        ge=0,
        le=DAY_S,
        description="s; how long a rise waits for slots, until past requests tell",
    )
    actuator: Literal["rest", "kubernetes", "none"] = Field(
        "rest",
        description="`rest`: Flink's REST API, `kubernetes`: the operator, `none`",
    )
    job_names: Annotated[Text, AfterValidator(check_job_names)] | None = Field(
        None,
        description="regular expression with a part `(?P<job>...)`: names with the same part are one job",
    )
    limits: ClusterLimits = ClusterLimits()
    kubernetes: Kubernetes = Kubernetes()
    connection: Connection = Connection()
    prometheus: Prometheus = Prometheus()
    kafka: dict[str, Kafka] = Field(default_factory=dict)
    partitions: dict[SourceKey, Annotated[int, Field(ge=1, le=SLOTS_MAX)]] = Field(
        default_factory=dict,
        description='`"job/operator"` of a source (name or vertex id) -> partitions that it reads, its most '
        "subtasks; unset: as Kafka's brokers tell",
    )

    def name_job(self, name: str) -> str:
        """Return the job that a name of Flink's means."""
        return name_job(self.job_names, name)

    def partitions_of(self, job: str, vertex_ids: Mapping[str, str]) -> dict[str, int]:
        """Return operator -> partitions that the settings give it, of a job's operators and their vertex ids.

        A key is looked up as a whole, so that a slash in the name of a job or operator cannot be misread.
        """
        keys = {name: (f"{job}/{name}", f"{job}/{vertex_id}") for name, vertex_id in vertex_ids.items()}
        return {
            name: next(self.partitions[key] for key in both if key in self.partitions)
            for name, both in keys.items()
            if any(key in self.partitions for key in both)
        }

    @model_validator(mode="after")
    def _windows_fit(self) -> Cluster:
        if HOUR_S % self.window_s:
            raise ValueError(f"window_s = {self.window_s} does not divide an hour; write 300, say")
        if self.rest_url is not None and self.poll_every_s > self.window_s:
            raise ValueError(
                f"window_s = {self.window_s} is shorter than poll_every_s = {self.poll_every_s:g}, so windows would be "
                f"without a poll; write poll_every_s = {self.window_s} or less"
            )
        if self.limits.mode in {"approve", "auto"} and self.rest_url is None:
            raise ValueError(
                f'limits.mode = "{self.limits.mode}" needs rest_url, to which steps are sent; write rest_url as well'
            )
        if self.actuator == "kubernetes" and self.rest_url is None:
            raise ValueError('actuator = "kubernetes" needs rest_url, by which steps are confirmed; write it as well')
        if self.limits.slots_min is not None and self.limits.slots_min > self.slots_max:
            raise ValueError(
                f"limits.slots_min = {self.limits.slots_min} is above slots_max = {self.slots_max}; "
                f"write limits.slots_min = {self.slots_max} or less"
            )
        if self.prometheus.url is not None and self.prometheus.step_s > self.window_s:
            raise ValueError(
                f"prometheus.step_s = {self.prometheus.step_s} is longer than window_s = {self.window_s}, so windows "
                f"would be without a sample; write prometheus.step_s = {self.window_s} or less"
            )
        needs_tls = [key for key in ("ca_file", "client_cert_file") if getattr(self.connection, key) is not None]
        if needs_tls and not (self.rest_url or "https:").startswith("https:"):
            raise ValueError(f'connection.{needs_tls[0]} needs TLS; write rest_url = "https://..."')
        return self


class Ingest(Section):
    """How raw payloads become observations."""

    late_allowance_h: int = Field(2, ge=0, le=8760, description="h; a line later than this is quarantined as too_late")
    missed_hours_days: int = Field(
        2, ge=0, le=3660, description="days; how far back missed hours are looked for; 0: never"
    )
    max_clock_skew_s: WholeSeconds = Field(300, description="s; beyond it a line is quarantined as clock_jump")
    settle_s: int = Field(30, ge=0, le=DAY_S, description="s; how long windows are disturbed after a restart")
    max_value: float = constant(1e15, "no counter or rate of Flink comes near it; a larger value is a broken one")
    caught_up_lag_s: float = Field(
        5.0, gt=0, le=DAY_S, description="s; age of the backlog below which a job has caught up"
    )
