"""What a decision is made from: the observed job, the intention, and the controller's own history of the job.

Vertices are named by their id within a job id: names change with the operator chain and need not be unique.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from include.domain.slots import count_slots
from include.flink.job_states import RESTARTING_STATES
from models.control.readiness import Failure, Readiness
from models.control.request_times import RequestTimes

Parallelism = Mapping[str, int]
"""Vertex id -> parallelism."""


class Mode(StrEnum):
    """How far the controller may go, from the strictest to the loosest."""

    OFF = "off"
    DRY_RUN = "dry-run"
    APPROVE = "approve"
    AUTO = "auto"


class Origin(StrEnum):
    """Where an intention comes from."""

    PLAN = "plan"
    REACTIVE = "reactive"
    PIN = "pin"
    RESTORE = "restore"
    UNDO = "undo"
    SCHEDULE = "schedule"


OF_A_PERSON = frozenset({Origin.PIN, Origin.UNDO, Origin.SCHEDULE})
"""What a person demands needs nobody's yes, and is not cut to a part."""


FAR_BEHIND_S: Final = 600.0
"""Records that wait longer than this make a job far behind: a stop takes a tenth of it at most."""


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """What a cluster says of a job, asked just before a decision.

    Attributes:
        job_id: None when no job of that name runs.
        state: Flink's job state.
        running: of a job whose vertices all run; empty otherwise. Vertices that have finished are left out.
        requested: upper bounds of its resource requirements; None where the scheduler has none.
        max_parallelism: upper limit of each vertex.
        slot_sharing_group: of each vertex; a vertex that is not named is in the default group.
        free_slots: of the cluster; None when it does not tell.
        is_elastic: whether the cluster adds TaskManagers by itself (native Kubernetes, YARN), so that slots that are
            given back can be had again although none is free; None when nobody knows.
        other_autoscaler: what else rescales the job; None when nothing was found.
        cluster_slots_used: slots of all jobs of the cluster, this one's among them; None when nobody has counted.
        problem: name of what makes the job one that nothing may be sent to (``ambiguous_name``, ``unreadable_reply``,
            ``missing_requirement``); empty when there is none.
        problem_detail: one sentence for a person.
        declared: parallelism in the resource of a deployment that is to bring the job there (a Kubernetes operator's
            map of overrides); None where there is no such resource. While a change of it waits for its turn it is what
            the job is asked for.
        submitted_at_s: when Flink was given the job, by Flink's clock; None when not told.
        obstacle: name of why nothing may be sent to the job now (``reactive_mode``, ``flink_too_old``,
            ``default_scheduler`` where it has no requirements); empty when nobody knows of one.
        obstacle_detail: one sentence for a person.
        upgrade_reason: why the job is not rescaled in place but stopped and started for a request; empty when it is.
        autoscaler_unknown: why nobody knows whether something else rescales the job; empty when that is known.
        readiness: what was asked before a request; None where nothing was to be sent.
        failures: of the job, asked while a request is followed; None where they were not asked for, or not told.
        told_at_s: when the cluster told this, by its own clock, epoch seconds; None where it does not say.
        cluster_rescales: other jobs of the cluster whose requests have no end yet; None when nobody has counted.
        cluster_rescaled_slots, cluster_slots_held: slots that those jobs hold, and that all jobs of the cluster do, as
            far as anybody has counted.
        cluster_jobs: jobs of the cluster; 0 when nobody has counted.
        late_s: how long its records wait by the last polls, infinite while it is down; None where that is not known.
        neighbours_rescaled: jobs that feed it, or that it feeds, whose requests have no end yet or that catch up.
        lower_bounds: of its resource requirements; None where they are not told. Flink's own are 1; any other was set
            by a person.
        running_since_s: when it last came to run, by Flink's clock: each rescale and each restart gives another time;
            None when not told.
        not_at_work: which of its vertices does not run though the job does, for a person; empty without one.
    """

    job_id: str | None
    state: str
    running: Parallelism
    requested: Parallelism | None
    max_parallelism: Parallelism = field(default_factory=dict)
    slot_sharing_group: Mapping[str, str] = field(default_factory=dict)
    free_slots: int | None = None
    is_elastic: bool | None = False
    other_autoscaler: str | None = None
    cluster_slots_used: int | None = None
    problem: str = ""
    problem_detail: str = ""
    declared: Parallelism | None = None
    submitted_at_s: float | None = None
    obstacle: str = ""
    obstacle_detail: str = ""
    upgrade_reason: str = ""
    autoscaler_unknown: str = ""
    readiness: Readiness | None = None
    failures: tuple[Failure, ...] | None = None
    told_at_s: float | None = None
    cluster_rescales: int | None = None
    cluster_rescaled_slots: int = 0
    cluster_slots_held: int = 0
    cluster_jobs: int = 0
    late_s: float | None = None
    neighbours_rescaled: tuple[str, ...] = ()
    lower_bounds: Parallelism | None = None
    running_since_s: float | None = None
    not_at_work: str = ""

    @property
    def is_restarting(self) -> bool:
        """Whether the job is being brought back after a failure."""
        return self.state in RESTARTING_STATES

    @property
    def needs_no_turn(self) -> bool:
        """Whether it is down, or so far behind that a stop adds next to nothing to what its records wait."""
        return self.is_restarting or (self.late_s is not None and self.late_s > FAR_BEHIND_S)

    @property
    def slots(self) -> int:
        """What the job takes now; while it does not run, what it was asked for."""
        return self.slots_of(self.running or self.requested or {})

    @property
    def slots_shown_free(self) -> int:
        """Slots that it is asked for and may not hold now: of a job that does not run they may be shown as free."""
        return 0 if self.running else self.slots

    def runs_at(self, parallelism: Parallelism) -> bool:
        """Whether all vertices that have not finished run, and run at a parallelism."""
        return bool(self.running) and all(parallelism.get(vertex) == count for vertex, count in self.running.items())

    def slots_of(self, parallelism: Parallelism) -> int:
        """Return the slots that a parallelism takes: the largest of each slot-sharing group, summed.

        >>> job = ObservedJob("j", "RUNNING", {}, None, slot_sharing_group={"b": "own"})
        >>> job.slots_of({"a": 4, "b": 2, "c": 3})
        6
        """
        return count_slots(parallelism, self.slot_sharing_group)


def reserve_slots(observed: ObservedJob, slots: int) -> ObservedJob:
    """Return what a job finds while other jobs of its cluster are to get ``slots`` more that do not run yet.

    Slots that another job gives back (negative) count only when the cluster shows them.
    """
    taken, free, used = max(slots, 0), observed.free_slots, observed.cluster_slots_used
    return replace(
        observed,
        free_slots=None if free is None else max(free - taken, 0),
        cluster_slots_used=None if used is None else used + taken,
    )


@dataclass(frozen=True, slots=True)
class Intention:
    """What a job should run at, and why.

    Attributes:
        parallelism: of every vertex.
        origin: plan, evaluation, a person's pin, or what a deployment has lost.
        step_id: of the planned step or the reactive decision.
        reason: one sentence for a person.
        valid_until_s: epoch seconds; later it is not acted on.
        settle_s: time after confirmation in which the job catches up, from the recovery model.
        objection: why it is not to be acted on, a name such as ``stale_plan``; empty without a reason.
        objection_detail: the same as one sentence for a person.
        falls_behind: whether the job falls behind: its rise waits for no cooldown.
    """

    parallelism: Parallelism
    origin: Origin
    step_id: str
    reason: str
    valid_until_s: float
    settle_s: float = 300.0
    objection: str = ""
    objection_detail: str = ""
    falls_behind: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was sent to Flink, or was about to be when the controller stopped.

    Attributes:
        step_id: of the intention behind it.
        job_id: of the job that it was sent for.
        target: upper bounds that were asked for.
        before: upper bounds in force until then.
        running_before: what ran then.
        sent_at_s, deadline_s: epoch seconds; without confirmation until the deadline it has failed.
        settle_s: see :class:`Intention`.
        is_rollback: whether it takes an earlier request back.
        failures_before: kinds of failures that the job had before it; None where nobody knows.
        failed_until_s: the last of them, epoch seconds by Flink's clock, or what that clock said where nobody knows
            them; None without one.
        wait_detail: for what Flink may wait before it begins, for a person; empty where nobody knows.
        forced_at_s: epoch seconds at which Flink, which waits for a checkpoint, begins without one; None where it does
            not wait, or nobody knows.
        arrived_at_s: when Flink was first seen to have it; None while that is not known, whatever was replied.
        approvals: ids of the answers that allowed it.
        running_since_s: since when the job had run then; None where it did not, or was not told.
        slots_came_at_s: when slots that were missing had come; infinite while they are missing, None where none were.
    """

    step_id: str
    job_id: str
    target: Parallelism
    before: Parallelism
    running_before: Parallelism
    sent_at_s: float
    deadline_s: float
    settle_s: float = 300.0
    is_rollback: bool = False
    failures_before: tuple[str, ...] | None = None
    failed_until_s: float | None = None
    wait_detail: str = ""
    forced_at_s: float | None = None
    arrived_at_s: float | None = None
    approvals: tuple[str, ...] = ()
    running_since_s: float | None = None
    slots_came_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class LateRequest:
    """A request of which nobody knows whether it arrived, after it was given up.

    Attributes:
        target: upper bounds that were asked for.
        until_s: epoch seconds; it can arrive until then, once. Later the same bounds are somebody else's.
    """

    target: Parallelism
    until_s: float


@dataclass(frozen=True, slots=True)
class UsedApproval:
    """A yes that has allowed its request.

    Attributes:
        approval_id: of the answer.
        until_s: epoch seconds; it would have counted until then.
    """

    approval_id: str
    until_s: float


@dataclass(frozen=True, slots=True)
class BlockedTarget:
    """A parallelism that did harm and is not tried again for a time.

    Attributes:
        parallelism: the target.
        until_s: epoch seconds; infinite: until a person lifts it.
        block_id: by which a person lifts it; empty where none can.
        because: what happened, for a person.
        failure: kind of the failure that it led to; empty where it led to none.
    """

    parallelism: Parallelism
    until_s: float
    block_id: str = ""
    because: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class JobHistory:
    """What the controller knows of its own doings on a job; a function of its log.

    Attributes:
        job_id: to which all of this belongs; another id starts a new history.
        in_flight: the request without an end; at most one.
        known_requested: bounds in force that the controller asked for or has accepted as somebody else's.
        late_requests: requests that were given up and may still arrive: one that does is no foreign change.
        request_times_s: of the last day, ascending.
        last_change_at_s: last confirmed change or foreign change.
        last_good: what ran undisturbed before the last own change.
        to_judge: the confirmed request whose outcome is not judged yet.
        confirmed_at_s: when that was confirmed.
        blocked: targets not to be tried.
        held_until_s, held_because: until then nothing is sent.
        unfilled: an own request whose bound Flink has not filled and that could not be taken back yet.
        submitted_at_s: when Flink was given the job that all of this belongs to; None when not told.
        lost: known parallelism that the deployment's resource holds and Flink forgot when it was given the job again.
        bad_steps_s: when steps were rolled back or failed, in this order; see :mod:`models.control.bad_steps`.
        known_lower: lower bounds in force that are known; None: none but Flink's own, which are 1.
        used_approvals: answers that have allowed their request; None in a log of before they were kept.
        ahead_s: the clock by which these times are less that of the cluster; None while the cluster tells none.
        last_sent: the last request that took none back; None without one, and in a log of before it was kept.
        late_since_s, down_since_s: since when it is late, or down; None while it is not. See
            :mod:`models.control.lateness`.
        times_of_requests: of the last confirmed ones, in this order.
    """

    job_id: str | None = None
    in_flight: Request | None = None
    known_requested: Parallelism | None = None
    late_requests: tuple[LateRequest, ...] = ()
    request_times_s: tuple[float, ...] = ()
    last_change_at_s: float | None = None
    last_good: Parallelism | None = None
    to_judge: Request | None = None
    confirmed_at_s: float | None = None
    blocked: tuple[BlockedTarget, ...] = ()
    held_until_s: float = 0.0
    held_because: str = ""
    unfilled: Request | None = None
    submitted_at_s: float | None = None
    lost: Parallelism | None = None
    bad_steps_s: tuple[float, ...] = ()
    known_lower: Parallelism | None = None
    used_approvals: tuple[UsedApproval, ...] | None = None
    ahead_s: float | None = None
    last_sent: Request | None = None
    late_since_s: float | None = None
    down_since_s: float | None = None
    times_of_requests: tuple[RequestTimes, ...] = ()

    @property
    def needs_help(self) -> bool:
        """Whether the job is late or down."""
        return self.late_since_s is not None or self.down_since_s is not None
