"""How forecasts and models become steps, and what is done between two plans."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, model_validator

from include.settings.names import JobKey
from include.settings.section import Hours, Seconds, Section, Share, Text, Weight, WholeSeconds
from include.utc import DAY_S, HOUR_S

RECOVERS = "programme"
"""The policy that plans for a time of recovery."""
TOLERATE = frozenset({RECOVERS, "planner", "controller_alone"})
"""Policies that ask how late a job may be."""
GoalName = Literal["cheap", "balanced", "on_time"]
LATE_WEIGHT_FACTOR: Final[dict[GoalName, float]] = {"cheap": 0.25, "balanced": 1.0, "on_time": 4.0}
"""Goal -> how much more a late minute costs than ``late_weight``."""
_PLANNERS_KEYS = {
    "": ("load_quantile",),
    "costs": (
        "rescale_margin",
        "failure_margin",
        "recovery_quantile",
        "overload_tolerance",
        "overload_late_share",
        "overload_slots_share",
    ),
    "timing": ("lead_margin_s", "max_lead_s"),
    "reactive": None,
}
"""Section -> keys that the programme does not ask: what they stand for follows from its three prices; None: all."""


class Capacity(Section):
    """How far an operator's capacity model is trusted."""

    lower_bound_z: float = Field(
        1.28, ge=0, le=10, description="lower bound of a capacity = posterior mean - z x standard deviation"
    )
    target_utilisation: float = Field(
        0.85, gt=0, le=1, description="required rate / capacity that a static configuration is sized for"
    )
    trust_region: int = Field(
        3, ge=0, le=1000, description="parallelism around an observed one within which the Gaussian process is believed"
    )
    fleet_prior: bool = Field(
        True, description="operators seen at few parallelisms borrow how operators of their kind scale in the fleet"
    )


class Costs(Section):
    """What slots, lateness and rescales cost in one unit, and how often failures and overload are expected."""

    resource_weight: Weight = Field(0.2, description="cost of a minute with all slots of the job")
    late_weight: Weight = Field(0.4, description="cost of a late minute")
    rescale_weight: Weight = Field(0.4, description="cost of a rescale")
    rescale_margin: float = Field(
        3.0, ge=1, le=1e6, description="a planned rescale must promise to save so many times its cost"
    )
    late_after_s: float = Field(60.0, gt=0, le=DAY_S, description="s; a job is late while a record waits for longer")
    late_share_goal: Share = Field(
        0.01, description="share of a day that a job may be late; pages show in red where more is expected"
    )
    recovery_within_s: float | None = Field(
        None,
        gt=0,
        le=DAY_S,
        description="s; after a lost TaskManager a job has caught up again within this; unset: no such goal. Of the "
        "policy `programme` alone",
    )
    recovery_probability: float = Field(
        0.95, gt=0.5, lt=1, description="probability with which it has; a minute in which that is less costs a late one"
    )
    failures_per_day: float = Field(
        1.0, ge=0, le=1000, description="failures of a job that are expected; catching up after them needs headroom"
    )
    failure_margin: float = Field(
        2.0, ge=1, le=1e6, description="lateness after a failure counts so many times in a plan"
    )
    recovery_quantile: float = Field(
        0.5, gt=0, lt=1, description="quantile of the load at which the recovery after a failure is judged"
    )
    overload_tolerance: float = Field(
        0.0, ge=0, lt=1, description="load may exceed capacity by this share before a job counts as overloaded"
    )
    overload_late_share: float = Field(
        0.06, gt=0, le=1, description="late share of an hour with overload, until the reactive controller ends it"
    )
    overload_slots_share: Share = Field(
        0.3, description="share of all slots that the reactive controller adds for an hour to end an overload"
    )


class Timing(Section):
    """When a planned step is sent."""

    lead_margin_s: Seconds = Field(60.0, description="s; added to the lead time that the recovery model gives")
    max_lead_s: WholeSeconds = Field(1800, description="s; a scale-up is sent at most this long ahead of its need")
    awaits_checkpoint: bool = Field(
        False,
        description="a scale-up is sent ahead by the interval of checkpoints as well, as learned of the job, and the "
        "programme counts what piles up meanwhile: where Flink (1.20 and later) waits for the next one and "
        "apply.trigger_checkpoint is off",
    )
    slots_wait_s: Seconds = Field(
        0.0,
        description="s; until slots come that a rise lacks, as of a new TaskManager: it is sent ahead by that, and the "
        "programme counts on the old size meanwhile; 0 where they are there",
    )
    apply_every_s: int = Field(
        300, ge=1, le=DAY_S, description="s; between two evaluations of a job, at which its steps are due"
    )


class Reactive(Section):
    """The reactive controller: what it does from what is measured between two plans."""

    utilisation_max: float = Field(
        1.05, gt=0, le=1000, description="utilisation above which a planned job is scaled up, if records wait as well"
    )
    lag_s: Seconds = Field(15.0, description="s; records that wait for longer than this count as waiting")
    overload: float = Field(
        1.1, gt=0, le=1000, description="utilisation above which a planned job is scaled up without waiting for lag"
    )
    hold_s: WholeSeconds = Field(
        0, description="s; after a scale-up of a planned job no scale-down is sent for so long"
    )
    utilisation_target: float = Field(
        0.9, gt=0, le=1, description="utilisation that the scale-up of a planned job aims at"
    )
    rescales_for_catch_up: bool = Field(
        True, description="scale a job up for as long as it works off a backlog, if that is cheaper"
    )
    rescales_while_restarting: bool = Field(True, description="the same already while the job restarts after a failure")
    unplanned_utilisation_target: float = Field(
        0.85, gt=0, le=1, description="utilisation that a rescale of a job without a plan aims at"
    )
    unplanned_utilisation_max: float = Field(
        0.95, gt=0, le=1, description="utilisation above which a job without a plan is scaled up"
    )
    scale_down_margin: float = Field(
        1.0,
        ge=0,
        le=1e6,
        description="a job without a plan is scaled down once that had saved so many x two rescales, lateness included",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Reactive:
        for low, high in (
            ("utilisation_max", "overload"),
            ("utilisation_target", "utilisation_max"),
            ("unplanned_utilisation_target", "unplanned_utilisation_max"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(
                    f"{low} = {getattr(self, low):g} is above {high} = {getattr(self, high):g}, "
                    f"so every rescale would ask for the next; write {low} = {getattr(self, high):g} or less"
                )
        return self


class JobGoals(Section):
    """What the people of one job ask for, where that is another than for all: see `[planner.costs]`."""

    late_after_s: float | None = Field(None, gt=0, le=DAY_S, description="s; a lateness that the job tolerates")
    recovery_within_s: float | None = Field(
        None, gt=0, le=DAY_S, description="s; after a lost TaskManager it has caught up again within this"
    )
    recovery_probability: float | None = Field(None, gt=0.5, lt=1, description="probability with which it has")


class Planner(Section):
    """How forecasts and models become steps."""

    policy: Text = Field("programme", description="policy of every job that `policies` does not name")
    policies: dict[JobKey, Text] = Field(
        default_factory=dict, description='policies of single jobs: "cluster/job" = "policy"'
    )
    parameters: dict[JobKey, dict[str, Any]] = Field(
        default_factory=dict,
        description='"cluster/job" = parameters of its policy that are other than in `[policies.<name>]`',
    )
    goal: GoalName = Field(
        "balanced", description="whether a late minute weighs a quarter (`cheap`), as much or four times (`on_time`)"
    )
    goals: dict[Text, GoalName] = Field(
        default_factory=dict, description='goals of a cluster or job: "cluster" or "cluster/job" = "on_time", say'
    )
    jobs: dict[JobKey, JobGoals] = Field(
        default_factory=dict, description='`[planner.jobs."cluster/job"]`: what its people ask for'
    )
    horizon_h: int = Field(24, ge=1, le=168, description="h; how far a plan reaches; whole bins, within the forecast")
    bin_s: int = Field(600, ge=60, le=DAY_S, description="s; time step of a plan")
    load_quantile: float = Field(
        0.9, gt=0.5, lt=1, description="quantile of the forecast load that steps are explained and placed with"
    )
    observed_h: Hours = Field(2.0, description="h; a policy that observes is shown the windows of so many hours")
    max_input_age_h: Hours = Field(3.0, description="h; with metrics or forecasts older than this a plan is refused")
    max_model_age_h: Hours = Field(
        72.0, description="h; a champion that no training has compared for so long is planned with wider intervals"
    )
    unproven_interval_factor: float = Field(
        2.0, ge=1, le=10, description="so many times wider are intervals of such a champion, or of one never compared"
    )
    capacity: Capacity = Capacity()
    costs: Costs = Costs()
    timing: Timing = Timing()
    reactive: Reactive = Reactive()

    @model_validator(mode="after")
    def _whole_bins(self) -> Planner:
        if self.horizon_h * HOUR_S % self.bin_s:
            raise ValueError(
                f"horizon_h = {self.horizon_h} is no whole number of bins of bin_s = {self.bin_s}; "
                "write a bin_s that divides an hour, 600, say"
            )
        return self

    @property
    def policies_in_use(self) -> frozenset[str]:
        """Names of the policies that some job may have."""
        return frozenset({self.policy, *self.policies.values()})

    def policy_of(self, cluster: str, job: str) -> str:
        """Return the name of a job's policy."""
        return self.policies.get(f"{cluster}/{job}", self.policy)

    def goal_of(self, cluster: str, job: str) -> GoalName:
        """Return a job's goal: its own, else that of its cluster, else that of all."""
        return self.goals.get(f"{cluster}/{job}", self.goals.get(cluster, self.goal))

    def for_job(self, cluster: str, job: str) -> Planner:
        """Return the settings as they hold for one job, its goals in the place of those of all."""
        goals, name = self.jobs.get(f"{cluster}/{job}"), self.goal_of(cluster, job)
        if goals is None and name == "balanced":
            return self
        own = {} if goals is None else goals.model_dump(exclude_none=True)
        own["late_weight"] = LATE_WEIGHT_FACTOR[name] * self.costs.late_weight
        return self.model_copy(update={"costs": self.costs.model_copy(update=own)})

    def find_unmet_goal(self) -> str | None:
        """Return which goal is set for a job whose policy has none; None where each can be met."""
        others = [f'planner.policies."{job}" = "{name}"' for job, name in self.policies.items() if name != RECOVERS]
        if self.policy != RECOVERS:
            others = [f'planner.policy = "{self.policy}"', *others]
        if self.costs.recovery_within_s is not None and others:
            return (
                f"planner.costs.recovery_within_s is a goal of all jobs, and {others[0]} knows no time of recovery; "
                f"write it in [planner.jobs] for jobs of the policy {RECOVERS}"
            )
        return next(filter(None, (self._find_unmet_goal_of(job, goals) for job, goals in self.jobs.items())), None)

    def find_unread_key(self) -> str | None:
        """Return which key is set that the policy of all jobs does not ask; None where there is none."""
        if self.policies_in_use != {RECOVERS}:
            return None
        for section, keys in _PLANNERS_KEYS.items():
            part = getattr(self, section) if section else self
            fields = type(part).model_fields
            for key in keys or fields:
                if (value := getattr(part, key)) != fields[key].default:
                    path = ".".join(filter(None, ("planner", section, key)))
                    return (
                        f"{path} = {value}: the policy {RECOVERS} of all jobs does not ask it, planner and "
                        f'controller_alone do; remove it, or write planner.policy = "planner"'
                    )
        return None

    def _find_unmet_goal_of(self, job: str, goals: JobGoals) -> str | None:
        policy = self.policy_of(*job.split("/", maxsplit=1))
        meets = {"late_after_s": policy in TOLERATE, "recovery_within_s": policy == RECOVERS}
        meets["recovery_probability"] = meets["recovery_within_s"]
        for key, is_met in meets.items():
            if getattr(goals, key) is not None and not is_met:
                return (
                    f'planner.jobs."{job}".{key}: policy {policy} of the job has no such goal; write '
                    f'planner.policies."{job}" = "{RECOVERS}", or remove the key'
                )
        if goals.recovery_probability is not None and (goals.recovery_within_s or self.costs.recovery_within_s) is None:
            return f'planner.jobs."{job}".recovery_probability has no time; write recovery_within_s = 600 as well, say'
        return None
