"""What is known of a fleet at one time, as plain values; every time is in epoch seconds.

None: nobody knows, or there is none. The fields' names are those of the commands' JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.loads import LoadFact

Parallelism = Mapping[str, int]
"""Operator, or vertex id where its name is not known -> parallelism."""


@dataclass(frozen=True, slots=True)
class HoldFact:
    """Something that keeps requests from jobs.

    Attributes:
        kind: ``person`` (``tidewise hold``), ``undo``, ``settings``, ``variable`` (``TIDEWISE_HOLD``) or ``change``
            (somebody changed the job, or a request was not filled).
        scope: ``all``, a cluster, or ``cluster/job``.
        by: who; empty where it was nobody.
        until_s: end; None: until it is released.
        release: what ends it.
    """

    kind: str
    scope: str
    by: str
    reason: str
    since_s: float | None
    until_s: float | None
    release: str


@dataclass(frozen=True, slots=True)
class NeighbourFact:
    """The next size with more paid slots than a step's, or with fewer, among those that were priced with it.

    Attributes:
        slot_hours_more: than the step's, while it runs; negative: fewer.
        late_minutes: expected in that time.
    """

    parallelism: Parallelism
    slots: int
    slot_hours_more: float
    late_minutes: float


@dataclass(frozen=True, slots=True)
class StepFact:
    """A step of the newest plan of a job.

    Attributes:
        apply_at_s, effective_at_s, valid_until_s: when it is sent, in effect, and followed by the next.
        load_q50_per_s, load_q90_per_s: highest forecast of a bin of the step, all sources, records/s.
        capacity_per_s, capacity_lower_per_s, capacity_upper_per_s: what the configuration sustains, records/s.
        late_minutes: expected while the step runs; None where its plan does not say.
        recovery_s: expected downtime and catch-up.
        slot_hours_saved: against staying as it is over the step; negative: added.
        reason, warning: sentences for a person.
        safer, cheaper: its neighbours; None where the plan names none.
    """

    cluster: str
    job: str
    step_id: str
    plan_as_of_s: float | None
    apply_at_s: float | None
    effective_at_s: float | None
    valid_until_s: float | None
    parallelism_from: Parallelism
    parallelism_to: Parallelism
    slots_from: int | None
    slots_to: int | None
    load_q50_per_s: float | None
    load_q90_per_s: float | None
    capacity_per_s: float | None
    capacity_lower_per_s: float | None
    capacity_upper_per_s: float | None
    late_minutes: float | None
    recovery_s: float | None
    slot_hours_saved: float | None
    policy: str
    reason: str
    warning: str
    safer: NeighbourFact | None = None
    cheaper: NeighbourFact | None = None


@dataclass(frozen=True, slots=True)
class DecisionFact:
    """A decision of the controller on a job.

    Attributes:
        at_s: when it was made.
        verb, reason: as in ``ops.control_log``; ``docs/reasons.md`` has their meaning.
        answer: of Flink; empty where nothing was sent, or none is known.
        origin: of what was desired: plan, reactive, pin, undo, restore; empty where nothing was.
        late_since_s, down_since_s: since when the job was late, or down, then; None: it was not.
        wish_changed: why something else was wanted than in the decision before; empty where it was not.
    """

    cluster: str
    job: str
    at_s: float
    verb: str
    reason: str
    detail: str
    answer: str
    origin: str
    step_id: str
    mode: str
    is_dry_run: bool
    state: str
    slots_from: int | None
    slots_to: int | None
    parallelism_from: Parallelism
    parallelism_to: Parallelism
    late_since_s: float | None = None
    down_since_s: float | None = None
    wish_changed: str = ""


@dataclass(frozen=True, slots=True)
class WaitingFact:
    """Something that a person has to answer or lift.

    Attributes:
        kind: ``approval``, ``block`` (a parallelism under which the job failed) or ``suspension`` (back in dry-run).
        what: the step, for ``tidewise approve``; empty for the others.
        remedy: the command.
    """

    kind: str
    cluster: str
    job: str
    what: str
    since_s: float | None
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class OutcomeFact:
    """What became of a rescale that was confirmed and judged; rates in records/s of all sources."""

    cluster: str
    job: str
    step_id: str
    requested_at_s: float | None
    confirmed_at_s: float | None
    judged_at_s: float | None
    slots_from: int | None
    slots_to: int | None
    is_worse: bool | None
    rolled_back: bool
    throughput_before_per_s: float | None
    throughput_after_per_s: float | None
    lag_before_s: float | None
    lag_after_s: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job.

    Attributes:
        mode: of the settings: how far the controller may go.
        state: Flink's, by the controller's last poll or, of before, its last decision; empty where there was none.
        slots_now: then; else what the newest plan starts from; None of a job that has ended.
        last_decision: the newest row of the log.
        last_rescale: the newest request that was sent.
        plan_status: planned, hold or refused; empty without a plan.
        steps: of the newest plan, from now on.
        refusals, roll_backs: of the last day; refusals that a person asked for are not counted.
        has_ended: whether it finished, was cancelled or failed for good, and has not run since; it is in no sum.
        window: the last one that the controller has polled; None where there is none of the last hours.
    """

    cluster: str
    job: str
    mode: str
    state: str
    slots_now: int | None
    last_decision: DecisionFact | None
    last_rescale: DecisionFact | None
    plan_status: str
    plan_reason: str
    plan_as_of_s: float | None
    steps: tuple[StepFact, ...] = ()
    holds: tuple[HoldFact, ...] = ()
    waiting: tuple[WaitingFact, ...] = ()
    refusals: int = 0
    roll_backs: int = 0
    has_ended: bool = False
    window: LoadFact | None = None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One cluster.

    Attributes:
        mode: of its jobs that have none of their own.
        controller: who holds its lease; empty where nobody does.
        ticked_at_s: when its lease was renewed last, at every tick.
        plan_as_of_s: of the newest plan of one of its jobs.
        metrics_until_s: end of the last hour that was ingested with a line of the cluster.
        lines, quarantined, quarantined_files: of the last day of that ingestion.
        silent_s: for how long Flink had told of none of its jobs when the controller last wrote down its polls;
            None where it has polled none.
        coverage_q90: share of past bins at or below q90, of the forecasts in use, all sources; None: not known.
    """

    cluster: str
    mode: str
    controller: str
    ticked_at_s: float | None
    plan_as_of_s: float | None
    metrics_until_s: float | None
    lines: int = 0
    quarantined: int = 0
    quarantined_files: int = 0
    coverage_q90: float | None = None
    silent_s: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The models of the last trainings.

    Attributes:
        trained_at_s: as-of of the training whose models are in use.
        gate: verdict on the newest training: first, passed, failed or kept.
        errors: what is predicted (capacity, recovery, latency) -> mean relative error of those in use; None: not known.
    """

    trained_at_s: float | None = None
    version: str = ""
    gate: str = ""
    gate_at_s: float | None = None
    gate_detail: str = ""
    errors: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HealthFact:
    """One figure of the fleet's health beside its threshold.

    Attributes:
        name: snake_case, of :class:`fleet.health.Fault`; the same in metrics and alerts.
        scope: ``all``, a cluster, or ``cluster/job``.
        needs_person: whether it is beyond its threshold; then ``tidewise status`` ends with 1.
        value, threshold: in ``unit``; None where there is none.
        subject: what of the scope it is about, such as a task or a folder; empty where the scope says it.
    """

    name: str
    scope: str
    needs_person: bool
    value: float | None
    threshold: float | None
    unit: str
    detail: str
    remedy: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """A fleet at one time."""

    at_s: float
    clusters: tuple[ClusterStatus, ...] = ()
    jobs: tuple[JobStatus, ...] = ()
    models: ModelFacts = field(default_factory=ModelFacts)
    holds: tuple[HoldFact, ...] = ()
    health: tuple[HealthFact, ...] = ()

    @property
    def waiting(self) -> tuple[WaitingFact, ...]:
        """All that waits for a person."""
        return tuple(one for job in self.jobs for one in job.waiting)

    @property
    def newest_s(self) -> float | None:
        """When anything was last written down; None for an empty lake."""
        times = [one.plan_as_of_s for one in self.clusters]
        times += [one.last_decision.at_s for one in self.jobs if one.last_decision is not None]
        return max((at_s for at_s in times if at_s is not None), default=None)

    @property
    def needs_person(self) -> bool:
        """Whether something does."""
        return any(one.needs_person for one in self.health)
