"""Settings of backtests, of requests to Flink, of changes of settings, and of when the DAGs run."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from include.policy_catalogue import WITHOUT_PLANS
from include.settings.cron import check_cron, shortest_interval_s
from include.settings.section import Days, Hours, Section, Text
from include.utc import DAY_S, HOUR_S

Cron = Annotated[str, AfterValidator(check_cron)]
CronOrNone = Annotated[str, AfterValidator(lambda cron: cron and check_cron(cron))]


class Backtest(Section):
    """How policies are compared on a job's own history."""

    days: Days = Field(7, description="last days of the history, which are scored")
    learning_days: float = Field(
        1.0, ge=0, le=3660, description="days replayed before them, in which policies learn from a cold start"
    )
    history_days_min: float = Field(2.0, gt=0, le=3660, description="days; a job with less history is left out")
    policies: tuple[Text, ...] = Field(
        ("programme", WITHOUT_PLANS, "flink_autoscaler_tuned"), min_length=1, description="policies that are compared"
    )
    margin: float = Field(
        0.01, ge=0, lt=1, description="share of its cost that another policy must save to be recommended"
    )


class MemoryGuard(Section):
    """Memory of the TaskManagers above which no slots are given back."""

    heap_share_max: float = Field(
        0.9,
        gt=0,
        le=1,
        description="share of heap in use above which no slots are given back; 1 here and for gc_share_max: memory "
        "is not asked for",
    )
    gc_share_max: float = Field(
        0.3,
        gt=0,
        le=1,
        description="share of time in garbage collection",
    )
    state_per_slot_max_mib: float = Field(
        32_768.0,
        gt=0,
        le=2**30,
        description="most state of a slot afterwards",
    )


class Apply(Section):
    """How steps reach Flink. What may be sent is in `[limits]`: nothing, unless its mode says so."""

    max_plan_age_h: Hours = Field(2.0, description="h; steps of an older plan are not sent")
    load_band: float = Field(0.5, gt=0, le=1000, description="share by which the load may lie outside q50 to q90")
    confirm_timeout_s: float = Field(
        180.0,
        gt=0,
        le=DAY_S,
        description="s; time to confirm a rescale, on top of Flink's own waits",
    )
    trigger_checkpoint: bool = Field(
        True,
        description="a checkpoint is asked for with a request: after it from Flink 1.20 on, before it in older ones",
    )
    checkpoint_max_age_s: float | None = Field(
        None,
        gt=0,
        le=30 * DAY_S,
        description="s; while the last checkpoint is older, only a rise for an overload is sent; unset: three "
        "times the job's interval, at least 180",
    )
    foreign_change_hold_h: Hours = Field(
        4.0, description="h; how long a job is left alone after somebody else's change"
    )
    memory: MemoryGuard = Field(default_factory=MemoryGuard)
    block_h: Hours = Field(6.0, description="h; how long a harmful or refused parallelism is not tried")
    tick_s: int = Field(60, ge=1, le=HOUR_S, description="s; time between two ticks; divides an hour")
    watch_span_s: int = Field(
        900, ge=60, le=DAY_S, description="s; how long polls are kept: two observation windows or more"
    )
    processes: int = Field(
        1,
        ge=1,
        le=64,
        description="processes of the controller among which evaluations are dealt out, a core and some 200 "
        "MiB each; a change takes a restart",
    )
    as_service: bool = Field(
        False,
        description="the controller is a service of its own, which tidewise_control watches",
    )

    @model_validator(mode="after")
    def _ticks_in_time(self) -> Apply:
        if self.tick_s > self.confirm_timeout_s:
            raise ValueError(
                f"tick_s = {self.tick_s} is above confirm_timeout_s = {self.confirm_timeout_s:g}, so no rescale would "
                "be seen in time; write tick_s = 60, say"
            )
        return self


class SettingsChanges(Section):
    """When a change counts for a controller that runs."""

    loosen_after_s: float = Field(
        60.0,
        ge=0,
        le=HOUR_S,
        description="s; how long a file stands until what loosens counts; what tightens counts at once",
    )


class Schedules(Section):
    """When each DAG runs: cron expressions in UTC; an empty one: when it is triggered."""

    control: Cron = Field("*/15 * * * *", description="the controller is started again; a run lasts until the next")
    hour: CronOrNone = Field("5 * * * *", description="raw files become tables, forecasts and plans are made")
    ingest: CronOrNone = Field("", description="raw files become tables, where `hour` is empty")
    train: Cron = Field("30 2 * * *", description="models are trained")
    plan: CronOrNone = Field("", description="forecasts and plans are made, where `hour` is empty")
    backtest: Cron = Field("0 4 * * 0", description="policies are compared; after a night's training")
    maintenance: Cron = Field("40 3 * * *", description="old rows go, small files are merged")
    watch: Cron = Field("*/10 * * * *", description="tidewise_watch asks whether something needs a person")

    @model_validator(mode="after")
    def _whole_hours(self) -> Schedules:
        for name, cron in (("hour", self.hour), ("ingest", self.ingest)):
            if cron and shortest_interval_s(cron) < HOUR_S:
                raise ValueError(
                    f'{name} = "{cron}" comes more often than every hour, and full hours are ingested; '
                    'write "5 * * * *", say'
                )
        return self
