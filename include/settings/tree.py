"""The whole tree of the settings, and what has to hold between its sections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from include.policy_catalogue import REFERENCES, WITHOUT_PLANS, check_names
from include.policy_parameters import read_parameters
from include.settings.advise import Advise, find_empty_objective
from include.settings.clusters import Cluster, Ingest
from include.settings.events import Event, EventName, find_overlap
from include.settings.feeds import list_neighbours
from include.settings.health import Health
from include.settings.learning import Forecast, Training
from include.settings.limits import FleetLimits, JobLimits, Mode, resolve_mode
from include.settings.limits_agree import find_contradiction, find_misspelt_cluster
from include.settings.names import ClusterName
from include.settings.notifications import Notifications
from include.settings.people import ApprovalRules, Roles
from include.settings.planner import Planner
from include.settings.profiling import Profiling
from include.settings.refusals import faults_of_parameters
from include.settings.retention import Retention
from include.settings.section import Section
from include.settings.stages import Apply, Backtest, Schedules, SettingsChanges
from include.settings.storage import Backup, Mlflow, Paths, Spark, Storage
from include.utc import HOUR_S

_UNNAMED_CLUSTER, _UNNAMED_JOB = Cluster(), JobLimits()


class SettingsError(ValueError):
    """The settings cannot be used; the message lists every key at fault, its value, why, and what to write.

    Attributes:
        faults: a line for each key; empty where the fault is of the file as a whole.
    """

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class Settings(Section):
    """The whole tree; see each section."""

    paths: Paths = Paths()
    storage: Storage = Storage()
    backup: Backup = Backup()
    spark: Spark = Spark()
    mlflow: Mlflow = Mlflow()
    clusters: dict[ClusterName, Cluster] = Field(default_factory=dict)
    ingest: Ingest = Ingest()
    training: Training = Training()
    forecast: Forecast = Forecast()
    planner: Planner = Planner()
    events: dict[EventName, Event] = Field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="parameters of policies, each in a section of its own"
    )
    profiling: Profiling = Profiling()
    backtest: Backtest = Backtest()
    advise: Advise = Advise()
    apply: Apply = Apply()
    limits: FleetLimits = FleetLimits()
    approval: ApprovalRules = ApprovalRules()
    roles: Roles = Roles()
    health: Health = Health()
    notifications: Notifications = Notifications()
    retention: Retention = Retention()
    schedules: Schedules = Schedules()
    settings: SettingsChanges = SettingsChanges()

    def cluster(self, name: str) -> Cluster:
        """Return a cluster's settings; a cluster known only from its files has the defaults."""
        return self.clusters.get(name, _UNNAMED_CLUSTER)

    @property
    def taskmanager_slots(self) -> dict[str, int]:
        """Cluster -> slots of a TaskManager, of those whose jobs pay whole ones."""
        return {name: one.taskmanager_slots for name, one in self.clusters.items() if one.taskmanager_slots > 1}

    def job_limits(self, cluster: str, job: str) -> JobLimits:
        """Return the limits that are set for a job itself; a job that is not named has none."""
        return self.limits.jobs.get(f"{cluster}/{job}", _UNNAMED_JOB)

    def neighbours_of(self, cluster: str, job: str) -> frozenset[str]:
        """Return the jobs, ``cluster/job``, that feed a job through a topic or that it feeds."""
        of_jobs = {key.partition("/")[2]: one for key, one in self.limits.jobs.items() if key.startswith(f"{cluster}/")}
        return frozenset(f"{cluster}/{one}" for one in list_neighbours(job, self.cluster(cluster), of_jobs))

    def mode_of(self, cluster: str, job: str | None = None) -> Mode:
        """Return how far Tidewise may go with a job, or with a cluster's jobs that have no mode of their own."""
        of_cluster = self.cluster(cluster).limits
        of_job = None if job is None else self.job_limits(cluster, job).mode
        return resolve_mode(self.limits.mode, of_cluster.mode, of_job, may_be_looser=job in of_cluster.looser_jobs)

    def approval_expires_h(self, cluster: str, job: str) -> float:
        """Return for how long a person's answer to a step of a job counts, h: the shortest of all levels."""
        levels = (self.limits, self.cluster(cluster).limits, self.job_limits(cluster, job))
        return min(level.approval_expires_h for level in levels if level.approval_expires_h is not None)

    @property
    def asks_for_approval(self) -> bool:
        """Whether some job may be in mode approve."""
        levels = [self.limits, *(one.limits for one in self.clusters.values()), *self.limits.jobs.values()]
        return any(level.mode == "approve" for level in levels)

    def parameters_of(self, policy: str, job: str | None = None) -> Mapping[str, Any]:
        """Return the parameters that are set for a policy, with those of one job, ``cluster/job``, in their place."""
        return {**self.policies.get(policy, {}), **self.planner.parameters.get(job or "", {})}

    @model_validator(mode="after")
    def _what_is_read_is_kept(self) -> Settings:
        reads = {
            "training.lookback_days": self.training.lookback_days,
            "forecast.history_days": self.forecast.history_days,
            "backtest.days": self.backtest.days + math.ceil(self.backtest.learning_days),
        }
        key, most = max(reads.items(), key=lambda item: item[1])
        retained = self.retention.silver_days
        if retained is not None and retained <= most:
            raise ValueError(
                f"retention.silver_days = {retained} removes what {key} = {most} reads; write {most + 1} or more"
            )
        return self

    @model_validator(mode="after")
    def _policies_are_known(self) -> Settings:
        named = {
            "planner.policy": [self.planner.policy],
            **{f'planner.policies."{job}"': [name] for job, name in self.planner.policies.items()},
            "policies": list(self.policies),
        }
        # The defaults name policies of the laboratory, which may not be installed.
        for key, compared in (("backtest.policies", self.backtest), ("advise.policies", self.advise)):
            if "policies" in compared.model_fields_set:
                named[key] = list(compared.policies)
        compared_with = {"backtest.policies": (*REFERENCES, WITHOUT_PLANS), "advise.policies": (WITHOUT_PLANS,)}
        for key, names in named.items():
            try:
                check_names(names, compared_with.get(key, ()))
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
        for name, given in self.policies.items():
            try:
                read_parameters(name, given)
            except ValueError as error:
                raise ValueError("; ".join(map(str, faults_of_parameters(error, name)))) from error
        for job in self.planner.parameters:
            name = self.planner.policy_of(*job.split("/", maxsplit=1))
            try:
                read_parameters(name, self.parameters_of(name, job))
            except ValueError as error:
                faults = "; ".join(map(str, faults_of_parameters(error, name)))
                raise ValueError(f'planner.parameters."{job}": {faults}') from error
        return self

    @model_validator(mode="after")
    def _policies_ask_what_is_set(self) -> Settings:
        fault = self.planner.find_unmet_goal() or find_empty_objective(self.advise.objectives)
        if fault:
            raise ValueError(fault)
        return self

    @property
    def job_keys(self) -> Mapping[str, Sequence[str]]:
        """Key of the settings -> clusters or ``cluster/job`` that are named below it."""
        return {
            "limits.jobs": list(self.limits.jobs),
            "planner.policies": list(self.planner.policies),
            "planner.parameters": list(self.planner.parameters),
            "planner.jobs": list(self.planner.jobs),
            "advise.objectives": list(self.advise.objectives),
            "profiling.jobs": list(self.profiling.jobs),
            **{f"events.{name}.jobs": one.job_keys for name, one in self.events.items()},
            "forecast.time_zones": list(self.forecast.time_zones),
            "forecast.holidays": list(self.forecast.holidays),
        }

    @model_validator(mode="after")
    def _limits_agree(self) -> Settings:
        contradiction = find_contradiction(self.limits, self.clusters)
        if contradiction:
            raise ValueError(contradiction)
        return self

    @model_validator(mode="after")
    def _events_are_apart(self) -> Settings:
        overlap = find_overlap(self.events)
        if overlap:
            raise ValueError(overlap)
        return self

    @model_validator(mode="after")
    def _clusters_are_known(self) -> Settings:
        misspelt = find_misspelt_cluster(self.job_keys, self.clusters)
        if misspelt:
            raise ValueError(misspelt)
        return self

    @model_validator(mode="after")
    def _sections_agree(self) -> Settings:
        planner, forecast = self.planner, self.forecast
        if planner.horizon_h > forecast.horizon_h:
            raise ValueError(
                f"planner.horizon_h = {planner.horizon_h} reaches further than forecast.horizon_h = "
                f"{forecast.horizon_h}; write planner.horizon_h = {forecast.horizon_h} or less"
            )
        for name, cluster in self.clusters.items():
            for key, hours in (
                ("observed_h", planner.observed_h),
                ("max_input_age_h", planner.max_input_age_h),
            ):
                if hours * HOUR_S < cluster.window_s:
                    raise ValueError(
                        f"planner.{key} = {hours:g} is shorter than a window of clusters.{name}.window_s = "
                        f"{cluster.window_s}, so no window would ever count; write planner.{key} = 2, say"
                    )
        return self


def s3_keys(settings: Settings) -> list[str]:
    """Return the keys whose value is a place on S3."""
    places = {
        "paths.lake": settings.paths.lake,
        "paths.raw": settings.paths.raw,
        "paths.out": settings.paths.out,
        "mlflow.artifact_root": settings.mlflow.artifact_root,
    }
    return [key for key, place in places.items() if place.startswith(("s3:", "s3a:"))]
