"""What models and forecasts are made from, and when a new model is accepted."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from include.settings.names import ClusterOrJob
from include.settings.section import Days, Hours, Section, Share, constant
from include.settings.time_zone import TimeZone
from include.utc import DAY_S, HOUR_S


class Training(Section):
    """What the models learn from and when a new one is accepted."""

    lookback_days: Days = Field(28, description="days of observations that a training reads")
    recent_per_parallelism: int = constant(5, "as many windows are kept per parallelism as ContTune averages: its K")
    min_busy_share: float = constant(0.15, "windows of a job that is hardly busy overestimate its true rate")
    holdout_share: float = constant(0.2, "a fifth held out tells models apart and leaves enough to learn from")
    gate_tolerance: Share = Field(0.02, description="share by which a challenger's error may be larger")
    gate_job_tolerance: Share = Field(
        0.05,
        description="share by which a job's error may be larger",
    )
    gate_worse_jobs_max: Share = Field(0.25, description="share of worse jobs above which the challenger is refused")
    gate_forward_h: float = constant(24.0, "a model is in use for a day until the next one")
    plan_cost_jobs: int = Field(
        50,
        ge=0,
        le=10_000,
        description="random jobs on which plans by new models are compared",
    )
    first_windows: int = constant(3, "fewer windows than three have no spread to learn from")
    retrain_after_h: Hours = Field(2.0, description="h; least time between trainings for new jobs")
    promotion: Literal["gate", "manual"] = Field(
        "gate", description="who makes a challenger champion; manual: a person"
    )


class Forecast(Section):
    """How source rates are predicted."""

    horizon_h: int = Field(24, ge=1, le=168, description="h; how far a forecast reaches; whole bins")
    bin_s: int = Field(300, ge=10, le=DAY_S, description="s; time step of a forecast; divides a day")
    history_days: Days = Field(28, description="days of history that a forecast reads")
    backtest_origins: int = constant(7, "the methods of forecasts are compared on each day of a week")
    champion_margin: float = constant(0.02, "a smaller gain in error is noise, and the method would change daily")
    time_zones: dict[ClusterOrJob, TimeZone] = Field(
        default_factory=dict,
        description='"cluster" or "cluster/job" = IANA time zone whose clock the load follows; else UTC',
    )
    holidays: dict[ClusterOrJob, tuple[date, ...]] = Field(
        default_factory=dict, description='"cluster" or "cluster/job" = days that are like Sundays'
    )

    @model_validator(mode="after")
    def _whole_bins(self) -> Forecast:
        if DAY_S % self.bin_s:
            raise ValueError(f"bin_s = {self.bin_s} does not divide a day; write 300, 600 or 900, say")
        if self.horizon_h * HOUR_S % self.bin_s:
            raise ValueError(
                f"horizon_h = {self.horizon_h} is no whole number of bins of bin_s = {self.bin_s}; "
                f"write horizon_h = {max(self.bin_s // HOUR_S, 1)}, say, or a shorter bin_s"
            )
        return self
