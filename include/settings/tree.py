"""The whole tree of the settings, and what has to hold between its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from include.policy_catalogue import ABLATIONS, REFERENCES, check_names
from include.policy_parameters import read_parameters
from include.settings.advise import Advise
from include.settings.clusters import Cluster, ClusterName, Ingest
from include.settings.learning import Forecast, Training
from include.settings.planner import Planner
from include.settings.refusals import faults_of_parameters
from include.settings.section import HOUR_S, Section
from include.settings.stages import Apply, Backtest, Profiling, Schedules
from include.settings.storage import Mlflow, Paths, Spark


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
    spark: Spark = Spark()
    mlflow: Mlflow = Mlflow()
    clusters: dict[ClusterName, Cluster] = Field(default_factory=dict)
    ingest: Ingest = Ingest()
    training: Training = Training()
    forecast: Forecast = Forecast()
    planner: Planner = Planner()
    policies: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="parameters of policies, each in a section of its own"
    )
    profiling: Profiling = Profiling()
    backtest: Backtest = Backtest()
    advise: Advise = Advise()
    apply: Apply = Apply()
    schedules: Schedules = Schedules()

    def cluster(self, name: str) -> Cluster:
        """Return a cluster's settings; a cluster known only from its files has the defaults."""
        return self.clusters.get(name, Cluster())

    def parameters_of(self, policy: str) -> Mapping[str, Any]:
        """Return the parameters that are set for a policy."""
        return self.policies.get(policy, {})

    @model_validator(mode="after")
    def _timed_by_the_schedule(self) -> Settings:
        """Take the interval of due steps from the schedule that makes it; refuse another one."""
        timing, every_s = self.planner.timing, self.schedules.apply_every_s
        if timing.apply_every_s == every_s:
            return self
        if "apply_every_s" in timing.model_fields_set:
            raise ValueError(
                f'planner.timing.apply_every_s = {timing.apply_every_s}: schedules.apply = "{self.schedules.apply}" '
                f"comes every {every_s} s, which is the interval; remove apply_every_s, or change schedules.apply"
            )
        planner = self.planner.with_values({"timing.apply_every_s": every_s})
        object.__setattr__(self, "planner", planner)  # frozen for everybody else
        return self

    @model_validator(mode="after")
    def _policies_are_known(self) -> Settings:
        named = {
            "planner.policy": [self.planner.policy],
            **{f'planner.policies."{job}"': [name] for job, name in self.planner.policies.items()},
            "backtest.policies": list(self.backtest.policies),
            "advise.policies": list(self.advise.policies),
            "policies": list(self.policies),
        }
        for key, names in named.items():
            try:
                check_names(names, (*REFERENCES, *ABLATIONS) if key == "backtest.policies" else ())
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from error
        for name, given in self.policies.items():
            try:
                read_parameters(name, given)
            except ValueError as error:
                raise ValueError("; ".join(map(str, faults_of_parameters(error, name)))) from error
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
