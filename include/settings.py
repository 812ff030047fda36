"""One settings tree for every stage: built-in defaults, then a TOML file, then environment variables.

The file is ``tidewise.toml`` in the working directory or the one named by ``TIDEWISE_SETTINGS``.  A variable such as
``TIDEWISE__PATHS__LAKE`` overrides ``lake`` in ``[paths]``.  Unknown keys are refused, values are checked when loaded.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

SETTINGS_FILE_VARIABLE = "TIDEWISE_SETTINGS"
ENV_PREFIX = "TIDEWISE__"
PROJECT = Path(__file__).resolve().parent.parent  # the checkout; meaningless inside a zip
_FILE = "tidewise.toml"


class SettingsError(ValueError):
    """The settings cannot be used; the message lists every key at fault and why."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Paths(_Section):
    """Where data lives; the lake may be any URI that Spark and Delta reach."""

    lake: str = "out/lake"
    raw: str = "out/raw"
    out: str = "out"


class Spark(_Section):
    """How a Spark session is started when the master's own configuration does not say."""

    master: str = "local[*]"
    driver_memory: str = "4g"
    shuffle_partitions: int = Field(4, ge=1)
    jars_dir: str = ".cache/jars"
    package_zip: str = "out/tidewise.zip"
    connection_id: str = "spark_default"


class Mlflow(_Section):
    """Where models are logged."""

    tracking_uri: str = "sqlite:///out/mlflow.db"
    artifact_root: str = "out/mlartifacts"
    experiment: str = "tidewise"
    registered_model: str = "tidewise-fleet"


class Cluster(_Section):
    """One Flink cluster; without a REST address it is only known from files of raw payloads."""

    rest_url: str | None = None
    window_s: int = Field(300, ge=1, le=3600, description="length of an observation window; must divide an hour")
    poll_every_s: float = Field(60.0, gt=0)
    slots_max: int = Field(64, ge=1, description="upper bound on the slots that a plan may give to one job")
    slots_total: int | None = Field(None, ge=1, description="most slots of all its jobs together; unset: no budget")
    apply_mode: Literal["dry-run", "auto"] | None = Field(None, description="overrides apply.mode for this cluster")

    @model_validator(mode="after")
    def _window_divides_an_hour(self) -> Cluster:
        if 3600 % self.window_s:
            raise ValueError(f"window_s = {self.window_s} does not divide an hour")
        return self


class Ingest(_Section):
    """How raw payloads become observations."""

    late_allowance_h: int = Field(2, ge=0, description="a later row is quarantined as too_late")
    max_clock_skew_s: int = Field(300, ge=0, description="beyond it: quarantined as clock_jump")
    settle_s: int = Field(30, ge=0, description="windows are marked disturbed until this long after a restart")
    max_value: float = Field(1e15, gt=0, description="a metric value above this is quarantined as value_huge")
    caught_up_lag_s: float = Field(5.0, gt=0, description="backlog in seconds of input below which a job has caught up")


class Training(_Section):
    """What the models learn from and when a new one is accepted."""

    lookback_days: int = Field(28, ge=1)
    recent_per_parallelism: int = Field(5, ge=1, description="K of ContTune's mean reversion")
    min_busy_share: float = Field(0.15, ge=0, lt=1, description="idle windows overestimate rates and are left out")
    holdout_share: float = Field(0.2, gt=0, lt=1, description="share of observations held back for the gate")
    gate_tolerance: float = Field(0.02, ge=0, description="a challenger this much worse still passes")
    promotion: Literal["gate", "manual"] = Field("gate", description="gate: passing moves champion")


class Forecast(_Section):
    """How source rates are predicted."""

    horizon_h: int = Field(24, ge=1, le=168)
    bin_s: int = Field(300, ge=10, description="length of a forecast bin")
    history_days: int = Field(28, ge=1)
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9, 0.95)
    backtest_origins: int = Field(7, ge=1)
    champion_margin: float = Field(0.02, ge=0, description="a method must be better by this share")
    time_zones: dict[str, str] = Field(
        default_factory=dict,
        description='"cluster" or "cluster/job" = IANA zone whose clock the load follows; else UTC',
    )
    holidays: dict[str, tuple[date, ...]] = Field(
        default_factory=dict, description='"cluster" or "cluster/job" = days that are like Sundays'
    )

    @field_validator("time_zones")
    @classmethod
    def _zones_exist(cls, zones: dict[str, str]) -> dict[str, str]:
        for zone in zones.values():
            try:
                ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError) as error:
                raise ValueError(f"{zone!r} is no IANA time zone; write Europe/Berlin, say") from error
        return zones


class Planner(_Section):
    """How forecasts and models become steps."""

    policy: str = Field("planner", description="of every job that policies does not name")
    policies: dict[str, str] = Field(default_factory=dict, description='"cluster/job" = "policy"')
    observed_h: float = Field(2.0, gt=0, description="windows of so many hours are shown to a policy that observes")
    horizon_h: int = Field(24, ge=1)
    bin_s: int = Field(600, ge=60)
    load_quantile: float = Field(0.9, gt=0.5, lt=1)
    capacity_z: float = Field(1.28, ge=0, description="lower bound = mean - z x deviation")
    target_utilisation: float = Field(0.85, gt=0, le=1)
    trust_region: int = Field(3, ge=0, description="alpha of ContTune, in parallelism")
    fleet_prior: bool = Field(True, description="hardly seen operators borrow how their kind scales in the fleet")
    min_step_s: int = Field(3600, ge=0, description="no step lasts less than this")
    rescale_cost_slot_s: float = Field(14_400.0, ge=0, description="a step must save this many slot-seconds")
    lead_margin_s: float = Field(60.0, ge=0, description="added to the lead time that the recovery model gives")
    resource_weight: float = Field(0.2, ge=0, description="cost of a minute with all slots of the job")
    late_weight: float = Field(0.4, ge=0, description="cost of a late minute")
    rescale_weight: float = Field(0.4, ge=0, description="cost of a rescale")
    rescale_margin: float = Field(3.0, ge=1, description="a planned one must promise to save so many times that")
    late_after_s: float = Field(60.0, gt=0, description="a job is late while a record waits for longer")
    failures_per_day: float = Field(1.0, ge=0, description="expected of a job; their catch-up needs headroom")
    failure_margin: float = Field(2.0, ge=1, description="lateness after a failure counts so many times in a plan")
    overload_tolerance: float = Field(0.0, ge=0, lt=1, description="share above capacity that makes no job late")
    overload_late_share: float = Field(0.06, gt=0, le=1, description="late share of an hour until the net ends it")
    overload_slots_share: float = Field(0.3, ge=0, description="of all slots, added by the net for an hour")
    recovery_quantile: float = Field(0.5, gt=0, lt=1, description="of the load at which recovery is judged")
    apply_every_s: int = Field(300, ge=1, description="how often due steps are looked for: schedules.apply")
    max_lead_s: int = Field(1800, ge=0, description="a rise is applied at most this long ahead of its need")
    net_utilisation: float = Field(1.05, gt=0, description="above it a planned job is enlarged at once")
    net_lag_s: float = Field(15.0, ge=0, description="and records wait for this long")
    net_overload: float = Field(1.1, gt=0, description="above it without waiting for lag")
    net_hold_s: int = Field(0, ge=0, description="for so long after it no fall is sent")
    net_target: float = Field(0.9, gt=0, le=1, description="utilisation that the enlarging step aims at")
    net_rescues: bool = Field(
        True, description="enlarge a job for as long as it works off a backlog, if that is cheaper"
    )
    net_restarts: bool = Field(True, description="the same already while it restarts after a failure")
    reactive_utilisation: float = Field(0.85, gt=0, le=1, description="what a step aims at that follows what is seen")
    reactive_utilisation_most: float = Field(0.95, gt=0, le=1, description="above it a job without plan is enlarged")
    reactive_margin: float = Field(
        1.0, ge=0, description="a fall without plan goes out when it would have saved so many times two rescales"
    )
    max_input_age_h: float = Field(3.0, gt=0, description="older metrics, forecasts: the plan is refused as stale")
    max_model_age_h: float = Field(72.0, gt=0)

    @property
    def policies_in_use(self) -> frozenset[str]:
        """Names of the policies that some job may have."""
        return frozenset({self.policy, *self.policies.values()})

    def policy_of(self, cluster: str, job: str) -> str:
        """Return the name of a job's policy."""
        return self.policies.get(f"{cluster}/{job}", self.policy)


class Profiling(_Section):
    """How a job is profiled (Phoebe III-C), and on what."""

    adapter: str = Field("simulated", description='"simulated", or "module:function" of an adapter to a real cluster')
    scale_out_min: int = Field(2, ge=1, description="the largest profiled is at most the cluster's slots_max")
    scale_outs: int = Field(8, ge=3, description="deployments that run side by side")
    rate_steps: int = Field(20, ge=2, description="steps up to slots_max times the highest load seen on one worker")
    rate_steps_max: int = Field(60, ge=2, description="the replay ends here though some deployment still keeps up")
    settle_s: int = Field(300, ge=0, description="a step settles, then is measured")
    window_s: int = Field(120, ge=10)


class Backtest(_Section):
    """How policies are compared on a job's own history."""

    days: int = Field(7, ge=1, description="the last days of the history, which are scored")
    learning_days: float = Field(1.0, ge=0, description="replayed before them: policies learn from a cold start")
    history_days_min: float = Field(2.0, gt=0, description="a job with less history is left out")
    policies: tuple[str, ...] = (
        "planner",
        "need_vector",
        "conttune_a3",
        "ds2",
        "flink_autoscaler_tuned",
        "phoebe",
        "reactive",
    )
    margin: float = Field(0.01, ge=0, lt=1, description="share of cost that another policy must save to be recommended")


class Apply(_Section):
    """How steps reach Flink. Nothing is sent unless the mode says ``auto``."""

    mode: Literal["dry-run", "auto"] = "dry-run"
    max_plan_age_h: float = Field(2.0, gt=0)
    cooldown_s: float = Field(300.0, ge=0)
    load_band: float = Field(0.5, gt=0, description="load this share above q90: refused")
    confirm_timeout_s: float = Field(180.0, gt=0)
    poll_every_s: float = Field(1.0, gt=0)
    watch: bool = Field(True, description="the safety net looks at fresh raw files before every round of due steps")
    watch_span_s: int = Field(900, ge=60, description="so far back; at least two observation windows are read")


class Schedules(_Section):
    """Cron expressions in UTC."""

    collect: str = "*/5 * * * *"
    ingest: str = "5 * * * *"
    train: str = "30 2 * * *"
    plan: str = "15 * * * *"
    apply: str = "*/5 * * * *"
    backtest: str = Field("0 4 * * 0", description="once a week, after a night's training")


class Settings(BaseSettings):
    """The whole tree; see each section."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENV_PREFIX, env_nested_delimiter="__", toml_file=None
    )

    paths: Paths = Paths()
    spark: Spark = Spark()
    mlflow: Mlflow = Mlflow()
    clusters: dict[str, Cluster] = {}
    ingest: Ingest = Ingest()
    training: Training = Training()
    forecast: Forecast = Forecast()
    planner: Planner = Planner()
    profiling: Profiling = Profiling()
    backtest: Backtest = Backtest()
    apply: Apply = Apply()
    schedules: Schedules = Schedules()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_file())

    def cluster(self, name: str) -> Cluster:
        """Return a cluster's settings; a cluster known only from its files has the defaults."""
        return self.clusters.get(name, Cluster())


def settings_file() -> Path:
    """Return the settings file in force (it need not exist unless named explicitly).

    A named file that is not there is looked for in the working directory: YARN and Kubernetes put shipped files there.
    Without a name it is ``tidewise.toml`` of the working directory, else of the project.
    """
    named = os.environ.get(SETTINGS_FILE_VARIABLE)
    candidates = [Path(named), Path(Path(named).name)] if named else [Path(_FILE), PROJECT / _FILE]
    return next((path for path in candidates if path.is_file()), candidates[0])


def _check_environment() -> None:
    sections = set(Settings.model_fields)
    for variable in os.environ:
        if variable.startswith(ENV_PREFIX) and variable.removeprefix(ENV_PREFIX).split("__")[0].lower() not in sections:
            raise SettingsError(f"{variable}: no such section; known are {sorted(sections)}")


def load_settings() -> Settings:
    """Load and check the settings.

    Raises:
        SettingsError: a named file is missing, or a key is unknown or out of range.
    """
    if SETTINGS_FILE_VARIABLE in os.environ and not settings_file().is_file():
        raise SettingsError(f"{SETTINGS_FILE_VARIABLE} names {settings_file()}, which does not exist")
    _check_environment()
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise SettingsError(f"settings refused: {faults}") from error
    except ValueError as error:  # a TOML file that does not parse
        raise SettingsError(f"{settings_file()}: {error}") from error
