"""How forecasts and models become steps, and what is done between two plans."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, model_validator

from include.settings.names import JobKey
from include.settings.section import Hours, Seconds, Section, Share, Text, Weight, constant
from include.utc import DAY_S, HOUR_S

RECOVERS = "programme"
"""The policy that asks how late a job may be, and plans for a time of recovery."""
GoalName = Literal["cheap", "balanced", "on_time"]
LATE_WEIGHT_FACTOR: Final[dict[GoalName, float]] = {"cheap": 0.25, "balanced": 1.0, "on_time": 4.0}
"""Goal -> how much more a late minute costs than ``late_weight``."""


class Capacity(Section):
    """How far an operator's capacity model is trusted."""

    lower_bound_z: float = constant(1.28, "one in ten capacities lies below, as one load in ten above its forecast q90")
    target_utilisation: float = constant(0.85, "only policies of the laboratory size a configuration by it")
    trust_region: int = constant(3, "a Gaussian process says little further from what was observed")
    fleet_prior: bool = constant(True, "an operator that was hardly observed is predicted better with it")


class Costs(Section):
    """What slots, lateness and rescales cost in one unit."""

    resource_weight: Weight = Field(0.2, description="cost of a minute with all slots of the job")
    late_weight: Weight = Field(0.4, description="cost of a late minute")
    rescale_weight: Weight = Field(0.4, description="cost of a rescale")
    late_after_s: float = Field(60.0, gt=0, le=DAY_S, description="s; a job is late while a record waits for longer")
    late_share_goal: Share = Field(0.01, description="share of a day that a job may be late; pages show more in red")
    recovery_within_s: float | None = Field(
        None,
        gt=0,
        le=DAY_S,
        description="s; goal of `programme`: time to catch up after a lost TaskManager",
    )
    recovery_probability: float = Field(
        0.95,
        gt=0.5,
        lt=1,
        description="probability of that goal; a minute below it costs as much as a late one",
    )
    failures_per_day: float = Field(1.0, ge=0, le=1000, description="expected failures of a job")


class Timing(Section):
    """When a planned step is sent."""

    awaits_checkpoint: bool = Field(
        False,
        description="a rise is sent ahead by the job's interval of checkpoints: for Flink 1.20 and later with "
        "apply.trigger_checkpoint off",
    )
    slots_wait_s: Seconds = Field(
        0.0,
        description="s; how much ahead a rise is sent, until a new TaskManager's slots come",
    )
    apply_every_s: int = Field(300, ge=1, le=DAY_S, description="s; time between two evaluations of a job")


class JobGoals(Section):
    """What the people of one job ask for, in place of `[planner.costs]`."""

    late_after_s: float | None = Field(None, gt=0, le=DAY_S, description="s; a lateness that the job tolerates")
    recovery_within_s: float | None = Field(
        None, gt=0, le=DAY_S, description="s; time to catch up after a lost TaskManager"
    )
    recovery_probability: float | None = Field(None, gt=0.5, lt=1, description="probability of that")


class Planner(Section):
    """How forecasts and models become steps."""

    policy: Text = Field("programme", description="policy of every job that `policies` does not name")
    policies: dict[JobKey, Text] = Field(default_factory=dict, description='of single jobs: "cluster/job" = "policy"')
    parameters: dict[JobKey, dict[str, Any]] = Field(
        default_factory=dict,
        description='"cluster/job" = parameters of its policy, before `[policies.<name>]`',
    )
    goal: GoalName = Field(
        "balanced", description="a late minute weighs a quarter, once or four times its `late_weight`"
    )
    goals: dict[Text, GoalName] = Field(default_factory=dict, description='"cluster" or "cluster/job" = "on_time"')
    jobs: dict[JobKey, JobGoals] = Field(
        default_factory=dict, description='`[planner.jobs."cluster/job"]`: what its people ask for'
    )
    horizon_h: int = Field(24, ge=1, le=168, description="h; how far a plan reaches; whole bins, within the forecast")
    bin_s: int = Field(600, ge=60, le=DAY_S, description="s; time step of a plan")
    observed_h: Hours = Field(2.0, description="h; windows that a policy is shown")
    max_input_age_h: Hours = Field(3.0, description="h; with older metrics or forecasts a plan is refused")
    max_model_age_h: Hours = Field(72.0, description="h; after it an uncompared champion has wider intervals")
    unproven_interval_factor: float = constant(
        2.0, "intervals twice as wide say that a model is not trusted; max_model_age_h says when"
    )
    capacity: Capacity = Capacity()
    costs: Costs = Costs()
    timing: Timing = Timing()

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

    def _find_unmet_goal_of(self, job: str, goals: JobGoals) -> str | None:
        policy = self.policy_of(*job.split("/", maxsplit=1))
        key = next(iter(goals.model_dump(exclude_none=True)), None)
        if key is not None and policy != RECOVERS:
            return (
                f'planner.jobs."{job}".{key}: policy {policy} of the job has no such goal; write '
                f'planner.policies."{job}" = "{RECOVERS}", or remove the key'
            )
        if goals.recovery_probability is not None and (goals.recovery_within_s or self.costs.recovery_within_s) is None:
            return f'planner.jobs."{job}".recovery_probability has no time; write recovery_within_s = 600 as well, say'
        return None
